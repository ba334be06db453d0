// Large uploads through buffers of their own that stay mapped between two of them: on a GPU about three times as fast as
// writeBuffer, which finds new memory each time (docs/performance.md).

const CHUNK_BYTES = 4 << 20;
const MOST_BUFFERS = 8;
const WRITE_CHUNK = 16 << 20;

export class Uploads {
  constructor(device, nudger) {
    this.device = device;
    this.queue = device.queue;
    this.nudger = nudger;
    this.most = 0;
    this.idle = [];
    this.made = 0;
    this.busy = new Set();
  }

  /** Use such buffers from now on: not on adapters that run on the CPU, where writeBuffer is faster. */
  useMapped() {
    this.most = MOST_BUFFERS;
  }

  /** Bytes that `write` takes at full speed between two calls of `ready`. */
  get bytes() {
    return this.most * CHUNK_BYTES;
  }

  /** Write bytes, a multiple of 4, at `offset` of `target`. */
  write(target, offset, bytes) {
    let at = 0;
    if (bytes.length >= CHUNK_BYTES) at = this.#copy(target, offset, bytes);
    for (; at < bytes.length; at += WRITE_CHUNK) {
      this.queue.writeBuffer(target, offset + at, bytes, at, Math.min(WRITE_CHUNK, bytes.length - at));
    }
  }

  /** Resolves when all buffers are free again. */
  async ready() {
    while (this.busy.size > 0) await Promise.all(this.busy);
  }

  /** Give the buffers back that are not in use. */
  trim() {
    for (const buffer of this.idle) buffer.destroy();
    this.made -= this.idle.length;
    this.idle.length = 0;
  }

  /** Copy as many bytes as there are buffers for, and return how many these are. */
  #copy(target, offset, bytes) {
    let at = 0;
    let encoder = null;
    const used = [];
    while (at < bytes.length) {
      const buffer = this.#take();
      if (buffer === null) break;
      const part = bytes.subarray(at, at + CHUNK_BYTES);
      new Uint8Array(buffer.getMappedRange()).set(part);
      buffer.unmap();
      encoder ??= this.device.createCommandEncoder({ label: "upload" });
      encoder.copyBufferToBuffer(buffer, 0, target, offset + at, part.length);
      used.push(buffer);
      at += part.length;
    }
    if (encoder !== null) this.queue.submit([encoder.finish()]);
    for (const buffer of used) this.#recycle(buffer);
    return at;
  }

  #take() {
    if (this.idle.length > 0) return this.idle.pop();
    if (this.made >= this.most) return null;
    const usage = GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC;
    try {
      const made = { label: "upload", size: CHUNK_BYTES, usage, mappedAtCreation: true };
      const buffer = this.device.createBuffer(made);
      this.made++;
      return buffer;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return null; // there is no memory to map: writeBuffer takes the rest
    }
  }

  #recycle(buffer) {
    const mapped = buffer.mapAsync(GPUMapMode.WRITE).then(
      () => this.idle.push(buffer),
      () => this.made--, // the device is lost or closed
    );
    const waiting = mapped.then(() => this.busy.delete(waiting));
    this.busy.add(waiting);
    this.nudger.watch(waiting);
  }
}
