// The two buffers that are filled while a submission is encoded and written once, right before it goes out.

export const ARENA_BYTES = 256 << 10;
const STAGING_BYTES = 256 << 10;

/** Parameter blocks that do not travel as immediates: a uniform buffer with a dynamic offset per launch. */
export class Arena {
  constructor(device, pipelines) {
    const usage = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
    this.device = device;
    this.pipelines = pipelines;
    this.buffer = device.createBuffer({ label: "arena", size: ARENA_BYTES, usage });
    this.words = new Uint32Array(ARENA_BYTES / 4);
    this.used = 0;
    this.groups = new Map();
    this.offset = new Uint32Array(1);
  }

  /** The bind group for parameters that take `step` bytes. */
  group(step) {
    let group = this.groups.get(step);
    if (group === undefined) {
      const entries = [{ binding: 0, resource: { buffer: this.buffer, size: step } }];
      group = this.device.createBindGroup({ layout: this.pipelines.arenaLayout(step), entries });
      this.groups.set(step, group);
    }
    return group;
  }

  /** Put the words of a launch's parameters in the next place and bind it. */
  bind(pass, launch) {
    this.words.set(launch.words, this.used / 4);
    this.offset[0] = this.used;
    pass.setBindGroup(1, launch.arenaGroup, this.offset, 0, 1);
    this.used += launch.step;
  }

  write(queue) {
    if (this.used > 0) queue.writeBuffer(this.buffer, 0, this.words, 0, this.used / 4);
    this.used = 0;
  }
}

/** Uploads to buffers that an earlier command of the same submission uses: they become copies, in their place. */
export class Staging {
  constructor(device) {
    const usage = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    this.buffer = device.createBuffer({ label: "staging", size: STAGING_BYTES, usage });
    this.words = new Uint32Array(STAGING_BYTES / 4);
    this.used = 0;
  }

  fits(nbytes) {
    return this.used + nbytes <= STAGING_BYTES;
  }

  /** Encode the copy of `words` to `target`. */
  copy(encoder, words, target, offset) {
    const nbytes = words.length * 4;
    this.words.set(words, this.used / 4);
    encoder.copyBufferToBuffer(this.buffer, this.used, target, offset, nbytes);
    this.used += nbytes;
  }

  write(queue) {
    if (this.used > 0) queue.writeBuffer(this.buffer, 0, this.words, 0, this.used / 4);
    this.used = 0;
  }
}
