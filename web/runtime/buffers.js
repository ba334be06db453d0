// The buffers of blocks. Large ones are watched: a browser says later that there was no memory for one.

// Smaller allocations do not fail alone.
const WATCHED_BYTES = 1 << 20;

export class Buffers {
  /** `relieve`: gives memory back. The answer comes between two submissions, too late for this one; the next may do. */
  constructor(device, faults, relieve) {
    this.device = device;
    this.faults = faults;
    this.relieve = relieve;
  }

  /** The buffer of a block. Where there is no memory the answer marks the block as broken. */
  create(block) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const watched = block.bytes >= WATCHED_BYTES;
    if (watched) this.faults.open("out-of-memory");
    const buffer = this.device.createBuffer({ label: `block ${block.id}`, size: block.bytes, usage });
    if (watched) {
      this.faults.close((message) => {
        block.broken = true;
        this.relieve();
        return `a buffer of ${block.bytes} bytes: ${message}`;
      });
    }
    return buffer;
  }
}
