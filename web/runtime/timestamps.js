// Times of dispatches: two queries for the pass of each, read together at the end. Of windows, where a device has no
// timestamps.

// Passes of one submission, and bytes of all submissions between two looks: past that nothing is timed.
const MOST_PASSES = 1024;
const RESULT_BYTES = 4 << 20;
// Where the results of a submission may begin.
const STEP = 256;
const NOTHING = -1;
// What stands in the place of a launch for the time of a window.
const WINDOW = -1;

/** The queries of a device with the feature timestamp-query, and what they brought so far. */
export class Timestamps {
  constructor(device, readback) {
    this.device = device;
    this.readback = readback;
    this.queries = device.createQuerySet({ label: "timestamps", type: "timestamp", count: 2 * MOST_PASSES });
    const usage = GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC;
    this.results = device.createBuffer({ label: "timestamps", size: RESULT_BYTES, usage });
    this.passes = 0;
    this.at = 0;
    this.launches = [];
    this.places = [];
  }

  /** What a pass that begins is to write; undefined when there is no room for its times. */
  begin() {
    const { passes } = this;
    if (passes === MOST_PASSES || this.at + 16 * (passes + 1) > RESULT_BYTES) return undefined;
    this.passes++;
    this.launches.push(NOTHING);
    this.places.push(this.at / 8 + 2 * passes);
    const timestampWrites = {
      querySet: this.queries,
      beginningOfPassWriteIndex: 2 * passes,
      endOfPassWriteIndex: 2 * passes + 1,
    };
    return { timestampWrites };
  }

  /** Say which launch the last timed pass holds. */
  ran(launch) {
    this.launches[this.launches.length - 1] = launch;
  }

  /** End a submission: its times go where no later one writes. */
  resolve(encoder) {
    if (this.passes === 0) return;
    encoder.resolveQuerySet(this.queries, 0, 2 * this.passes, this.results, this.at);
    this.at += Math.ceil((16 * this.passes) / STEP) * STEP;
    this.passes = 0;
  }

  /**
   * Resolves to launch, begin, end of every timed dispatch since the last look, one after the other (Float64Array), in
   * nanoseconds.
   */
  async take() {
    const { launches, places, at } = this;
    this.launches = [];
    this.places = [];
    this.at = 0;
    if (at === 0) return new Float64Array(0);
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const buffer = this.device.createBuffer({ label: "timestamps", size: at, usage });
    try {
      const encoder = this.device.createCommandEncoder({ label: "timestamps" });
      encoder.copyBufferToBuffer(this.results, 0, buffer, 0, at);
      this.device.queue.submit([encoder.finish()]);
      await this.readback.finished(buffer.mapAsync(GPUMapMode.READ));
      const times = new BigUint64Array(buffer.getMappedRange());
      const found = [];
      for (let i = 0; i < launches.length; i++) {
        if (launches[i] === NOTHING) continue;
        found.push(launches[i], Number(times[places[i]]), Number(times[places[i] + 1]));
      }
      return Float64Array.from(found);
    } finally {
      buffer.destroy();
    }
  }

  destroy() {
    this.results.destroy();
    this.queries.destroy();
  }
}

/** Wall times of windows, from their submission until their work is done. */
export class WindowTimes {
  constructor(device, readback) {
    this.device = device;
    this.readback = readback;
    this.pending = [];
  }

  /** Say when the submission of the last window began. */
  submitted(began) {
    const done = this.device.queue.onSubmittedWorkDone().then(() => performance.now());
    done.catch(() => {}); // a lost device; `take` says so
    this.pending.push({ began, done });
  }

  /** The same as `Timestamps.take`, of windows. */
  async take() {
    const { pending } = this;
    this.pending = [];
    const found = pending.map(async ({ began, done }) => [WINDOW, began * 1e6, (await done) * 1e6]);
    const times = Promise.all(found);
    await this.readback.finished(times);
    return Float64Array.from((await times).flat());
  }
}
