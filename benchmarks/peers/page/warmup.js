// Brings the device's clock up before a measurement. While outputs are read and summed nothing runs on the device, so its clock
// falls, by chance more or less, and rises again only after some 100 ms of work. The kernel is neutral: arithmetic alone, on a
// device of its own, the same before every library's turn.

const GROUPS = 2112;
const GROUP_SIZE = 256;
const OPERATIONS = 16; // in one turn of the loop

const KERNEL = `
@group(0) @binding(0) var<storage, read_write> values: array<f32>;
@group(0) @binding(1) var<uniform> turns: u32;

// Both values come near a fixed point, so that none of them grows or vanishes.
@compute @workgroup_size(${GROUP_SIZE})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var x = values[id.x];
  var y = x + 1.0;
  for (var i = 0u; i < turns; i++) {
    x = 0.5 * y + 0.25;
    y = 0.5 * x - 0.25;
    x = 0.5 * y + 0.25;
    y = 0.5 * x - 0.25;
    x = 0.5 * y + 0.25;
    y = 0.5 * x - 0.25;
    x = 0.5 * y + 0.25;
    y = 0.5 * x - 0.25;
  }
  values[id.x] = x + y;
}`;

// A submission takes so long at full clock, and so many are queued at once: together longer than the browser takes to notice
// that one has ended, which is up to 4 ms. So the device is never idle between them.
const SUBMISSION_MS = 4;
const AHEAD = 4;
// For finding out how much work that is: long beside a wait; long enough to bring the clock up; submissions to take the mean of.
const LONG_MS = 25;
const RISE_MS = 300;
const SEVERAL = 8;

export class Warmup {
  #device;
  #pipeline;
  #group;
  #turns;
  #count = 1;
  #clock = null;

  /** On a device of its own, with submissions of the right length. */
  static async open(adapter) {
    const timed = adapter.features.has("timestamp-query");
    const warmup = new Warmup(await adapter.requestDevice({ requiredFeatures: timed ? ["timestamp-query"] : [] }), timed);
    await warmup.#measure();
    return warmup;
  }

  constructor(device, timed) {
    this.#device = device;
    const module = device.createShaderModule({ code: KERNEL });
    this.#pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
    const values = device.createBuffer({ size: 4 * GROUPS * GROUP_SIZE, usage: GPUBufferUsage.STORAGE });
    this.#turns = device.createBuffer({ size: 4, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
    const entries = [values, this.#turns].map((buffer, binding) => ({ binding, resource: { buffer } }));
    this.#group = device.createBindGroup({ layout: this.#pipeline.getBindGroupLayout(0), entries });
    if (timed) {
      this.#clock = {
        queries: device.createQuerySet({ type: "timestamp", count: 2 }),
        resolved: device.createBuffer({ size: 16, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC }),
        read: device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST }),
      };
    }
    this.#set(1);
  }

  /**
   * Keep the device busy for about `ms`, and until all of it is done. Resolves to the operations per second of the last
   * submission, which go with the clock; null where the device takes no time stamps.
   */
  async run(ms) {
    const began = performance.now();
    const ahead = [];
    while (performance.now() - began < ms) {
      this.#submit();
      ahead.push(this.#done());
      if (ahead.length === AHEAD) await ahead.shift();
    }
    this.#submit(this.#clock);
    if (!this.#clock) {
      await this.#done();
      return null;
    }
    const { read } = this.#clock;
    await read.mapAsync(GPUMapMode.READ);
    const [start, end] = new BigUint64Array(read.getMappedRange());
    read.unmap();
    return end > start ? (1e9 * OPERATIONS * this.#count * GROUPS * GROUP_SIZE) / Number(end - start) : null;
  }

  #done() {
    return this.#device.queue.onSubmittedWorkDone();
  }

  #set(count) {
    this.#count = count;
    this.#device.queue.writeBuffer(this.#turns, 0, Uint32Array.of(count));
  }

  /** How long so many submissions take, from the first to the end of the last. */
  async #time(submissions) {
    const began = performance.now();
    for (let i = 0; i < submissions; i++) this.#submit();
    await this.#done();
    return performance.now() - began;
  }

  async #measure() {
    await this.#time(1); // compiles
    while ((await this.#time(1)) < LONG_MS) this.#set(4 * this.#count);
    await this.run(RISE_MS);
    const took = (await this.#time(SEVERAL)) / SEVERAL;
    this.#set(Math.max(1, Math.round((this.#count * SUBMISSION_MS) / took)));
  }

  #submit(clock = null) {
    const encoder = this.#device.createCommandEncoder();
    const stamps = clock && { querySet: clock.queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
    const pass = encoder.beginComputePass(stamps ? { timestampWrites: stamps } : {});
    pass.setPipeline(this.#pipeline);
    pass.setBindGroup(0, this.#group);
    pass.dispatchWorkgroups(GROUPS);
    pass.end();
    if (clock) {
      encoder.resolveQuerySet(clock.queries, 0, 2, clock.resolved, 0);
      encoder.copyBufferToBuffer(clock.resolved, 0, clock.read, 0, 16);
    }
    this.#device.queue.submit([encoder.finish()]);
  }
}
