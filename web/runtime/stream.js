// The stream: owns the GPU device, takes windows of commands, writes and reads. Its interface is integers and typed arrays only.
// The commands and their meaning are in docs/design.md, "The stream".

import { openDevice } from "./adapter.js";
import { Backlog } from "./backlog.js";
import { Buffers } from "./buffers.js";
import { STATUS_BYTES, STATUS_SLOT } from "./commands.js";
import { Encoder } from "./encoder.js";
import { Faults } from "./faults.js";
import { Groups } from "./groups.js";
import { makeLaunch } from "./launch.js";
import { Pipelines } from "./pipelines.js";
import { Pool } from "./pool.js";
import { Readback } from "./readback.js";
import { Slots, checkRange } from "./slots.js";
import { Timestamps, WindowTimes } from "./timestamps.js";
import { Uploads } from "./uploads.js";

export class Stream {
  /** Open the adapter and resolve to a stream; see `openDevice`. */
  static async open({ defaultLimits = false } = {}) {
    const { device, info } = await openDevice(defaultLimits);
    return new Stream(device, info);
  }

  constructor(device, info) {
    this.device = device;
    this.info = info;
    this.queue = device.queue;
    this.faults = new Faults(device);
    this.groups = new Groups(device, info.limits.maxStorageBufferBindingSize);
    this.pipelines = new Pipelines(device, this.faults, info);
    this.readback = new Readback(device, this.faults);
    this.uploads = new Uploads(device, this.readback.nudger);
    this.backlog = new Backlog({
      watch: (promise) => this.readback.nudger.watch(promise),
      fail: (text) => this.faults.add(text),
    });
    this.buffers = new Buffers(device, this.faults, () => {
      this.encoder.settle();
      this.pool.trim();
    });
    this.pool = new Pool({
      create: (block) => this.buffers.create(block),
      forget: (block) => this.groups.forget(block),
      largest: info.limits.maxBufferSize,
    });
    this.launches = []; // undefined where one ended
    this.unused = []; // the ids of those

    this.slots = new Slots(this.pool);
    this.encoder = new Encoder(this);
    this.changed = true; // whether the status may say something that no read took along
    this.work = 0; // windows and uploads so far
    this.done = 0; // how many of them are known to be done

    this.windowTimes = null; // while windows are, where the device has no timestamps
    this.timing = false; // when true, encodeMs sums the time spent in submit
    this.encodeMs = 0;
  }

  /** Id of a compute pipeline. `bindings`: a letter per binding of group 0, "r" read, "w" read_write. */
  pipeline(source, bindings, paramsBytes, immediate, label) {
    this.faults.alive();
    return this.pipelines.create(source, bindings, paramsBytes, immediate, label);
  }

  /** The same for a pipeline that is not needed at once: it is compiled beside other work (`Pipelines.later`). */
  pipelineLater(source, bindings, paramsBytes, immediate, label, compact = "") {
    this.faults.alive();
    return this.pipelines.later(source, bindings, paramsBytes, immediate, label, compact);
  }

  /** The same, compiled beside other work; resolves to the id. */
  async warm(source, bindings, paramsBytes, immediate, label) {
    this.faults.alive();
    return this.pipelines.warm(source, bindings, paramsBytes, immediate, label);
  }

  /**
   * Id of a launch. `params`: bytes of the parameter block; `patches`: the words of it that each run brings; `turn`: the word
   * that is 1 and 0 in turns, from one run of such launches to the next, or -1.
   */
  launch(pipelineId, params, patches, x, y, z, turn = -1) {
    const pipeline = this.pipelines.made[pipelineId];
    if (pipeline === undefined) throw new RangeError(`launch: pipeline ${pipelineId} does not exist`);
    const launch = makeLaunch(
      pipeline,
      params,
      patches,
      x,
      y,
      z,
      this.info.limits.maxComputeWorkgroupsPerDimension,
      turn,
    );
    if (launch.step > 0) launch.arenaGroup = this.encoder.arena.group(launch.step);
    const id = this.unused.pop() ?? this.launches.length;
    this.launches[id] = launch;
    return id;
  }

  /** End launches and pipelines that nobody runs any more; their ids are given out again. */
  forget(launches, pipelines) {
    // Windows that wait hold launches by their ids, and launches hold their pipelines.
    if (this.backlog.mustWait()) this.backlog.add(() => this.#forget(launches));
    else this.#forget(launches);
    this.pipelines.forget(pipelines);
  }

  #forget(launches) {
    for (const id of launches) {
      if (this.launches[id] === undefined) continue;
      this.launches[id] = undefined;
      this.unused.push(id);
    }
  }

  /**
   * Interpret a window (Uint32Array) and submit it, or, `held`, let the read that follows do so. A command that fails is
   * left out; its error is thrown at the end. Where it comes to a launch whose pipeline is still being compiled, the rest waits,
   * and so do the calls that follow; `failure` tells their errors.
   */
  submit(words, held = false) {
    this.faults.alive();
    if (this.backlog.mustWait(words.byteLength)) {
      this.#submitLater(words.slice(), held);
      return;
    }
    const { pipeline, failure } = this.#submit(words, held);
    if (pipeline !== null) {
      this.#submitLater(words.slice(this.encoder.at), held);
      this.backlog.wait(pipeline);
    }
    if (failure !== null) throw failure;
  }

  #submitLater(words, held) {
    let rest = words;
    const call = () => {
      const { pipeline, failure } = this.#submit(rest, held);
      if (failure !== null) this.faults.add(failure.message);
      if (pipeline !== null) rest = rest.subarray(this.encoder.at);
      return pipeline;
    };
    this.backlog.add(call, words.byteLength);
  }

  /** The first error; and a pipeline that is still being compiled, with the encoder's `at` where the launch is that needs it. */
  #submit(words, held) {
    this.changed = true;
    this.work++;
    const started = this.timing || this.windowTimes !== null ? performance.now() : 0;
    const { pipeline, failure } = this.encoder.encode(words);
    // A window that is timed begins where it is submitted.
    if (!held || failure !== null || pipeline !== null || this.windowTimes !== null) this.encoder.settle();
    if (this.timing) this.encodeMs += performance.now() - started;
    if (this.windowTimes !== null && pipeline === null) this.windowTimes.submitted(started);
    return { pipeline, failure };
  }

  /** Whether the pipelines of launches (ids) are compiled. */
  compiled(ids) {
    return ids.every((id) => (this.launches[id]?.pipeline.gpu ?? null) !== null);
  }

  /** Write bytes (Uint8Array) to a slot that no pending command touches; the slot is made when it is new. */
  write(slot, nbytes, offset, bytes) {
    this.faults.alive();
    if (this.backlog.mustWait(bytes.length)) {
      const kept = bytes.slice();
      this.backlog.add(() => this.#write(slot, nbytes, offset, kept), kept.length);
    } else {
      this.#write(slot, nbytes, offset, bytes);
    }
  }

  #write(slot, nbytes, offset, bytes) {
    this.encoder.settle(); // an interrupt may have kept the read from which a window was held
    if (!this.slots.has(slot)) this.slots.declare(slot, nbytes);
    this.work++;
    const block = this.slots.block(slot);
    if (offset % 4 !== 0) throw new RangeError(`write: offset ${offset} is not a multiple of 4`);
    checkRange("write", offset, bytes.length, block);
    const whole = bytes.length - (bytes.length % 4);
    this.uploads.write(block.buffer, offset, bytes.subarray(0, whole));
    if (whole < bytes.length) {
      const tail = new Uint8Array(4);
      tail.set(bytes.subarray(whole));
      this.queue.writeBuffer(block.buffer, offset + whole, tail);
    }
    this.encoder.counts.uploads++;
  }

  /** Begin a read, behind everything submitted or held; the ticket is for `arrival`, `take` and `drop`. */
  fetch(slot, offset, nbytes) {
    this.faults.alive();
    const ticket = this.readback.reserve();
    if (this.backlog.mustWait()) {
      this.backlog.add(() => {
        try {
          this.#fetch(ticket, slot, offset, nbytes);
        } catch (error) {
          this.readback.fail(ticket, error);
        }
      });
      return ticket;
    }
    try {
      this.#fetch(ticket, slot, offset, nbytes);
    } catch (error) {
      this.readback.release(ticket);
      throw error;
    }
    return ticket;
  }

  #fetch(ticket, slot, offset, nbytes) {
    let read;
    try {
      const block = this.slots.block(slot);
      checkRange("read", offset, nbytes, block);
      const asks = this.changed && this.slots.has(STATUS_SLOT);
      const status = asks ? this.slots.block(STATUS_SLOT).buffer : null;
      // A copy that was checked fails only with what came before it, and an answer costs as much as the copy.
      const encoder = this.encoder.open(this.faults.waiting.size > 0);
      read = this.readback.encode(encoder, block.buffer, offset, nbytes, status);
      this.changed = false;
    } finally {
      this.encoder.settle(); // what is held goes out in any case
    }
    const work = this.work;
    this.readback.begin(ticket, read, work === this.done);
    this.readback.arrival(ticket).then(() => (this.done = Math.max(this.done, work)));
  }

  /** Resolves when a read can be taken, also where it failed: `take` throws then. */
  arrival(ticket) {
    return this.readback.arrival(ticket);
  }

  /** Move what a read brought into `bytes` (Uint8Array), and into `status` (Uint32Array of 16) if that says something. */
  take(ticket, bytes, status) {
    return this.readback.take(ticket, bytes, status);
  }

  /** Let go of a read that nobody takes. */
  drop(ticket) {
    this.readback.drop(ticket);
  }

  /** Read in one go: resolves to { bytes: Uint8Array, status: Uint32Array }. */
  async read(slot, offset, nbytes) {
    const ticket = this.fetch(slot, offset, nbytes);
    await this.arrival(ticket);
    const bytes = new Uint8Array(nbytes);
    const status = new Uint32Array(STATUS_BYTES / 4);
    this.take(ticket, bytes, status);
    return { bytes, status };
  }

  /** Resolves when all submitted work is done. */
  async synchronize() {
    this.faults.alive();
    await this.backlog.finished();
    this.encoder.settle();
    const work = this.work;
    await this.readback.finished(this.queue.onSubmittedWorkDone(), work === this.done);
    this.done = Math.max(this.done, work);
  }

  /** Time every dispatch from now on, or, where the device has no timestamps, every window; or stop. Whether it has. */
  time(on) {
    this.faults.alive();
    this.backlog.drain();
    const can = this.info.features.includes("timestamp-query");
    if (!on) {
      this.encoder.timestamps?.destroy();
      this.encoder.timestamps = this.windowTimes = null;
    } else if (can) {
      this.encoder.timestamps ??= new Timestamps(this.device, this.readback);
    } else {
      this.windowTimes ??= new WindowTimes(this.device, this.readback);
    }
    return can;
  }

  /**
   * Resolves to launch, begin, end of each dispatch timed since the last call, or -1, begin, end of each window
   * (Float64Array), in nanoseconds.
   */
  async times() {
    this.faults.alive();
    await this.backlog.finished();
    return (await (this.encoder.timestamps ?? this.windowTimes)?.take()) ?? new Float64Array(0);
  }

  /** Counters since the start, and buffers and bytes of now. */
  stats() {
    const { pool } = this;
    const { counts } = this.encoder;
    return {
      live_buffers: pool.liveBlocks,
      reserved_bytes: pool.liveBytes + pool.pooledBytes,
      pooled_bytes: pool.pooledBytes,
      dispatches: counts.dispatches,
      submits: counts.submits,
      passes: counts.passes,
      bind_groups: this.groups.made,
      cached_bind_groups: this.groups.count,
      pipelines: this.pipelines.count,
      compiling: this.pipelines.pending,
      uploads: counts.uploads,
    };
  }

  /** Give the free blocks back to the device. */
  trim() {
    this.encoder.settle();
    this.pool.trim();
    this.uploads.trim();
  }

  /** The first error that arrived since the last call, or null. */
  failure() {
    return this.faults.take();
  }

  /** Destroy the device and everything on it. */
  close() {
    this.faults.closing = true;
    this.pipelines.close();
    this.backlog.close();
    this.readback.close();
    this.device.destroy();
    this.slots.clear();
    this.launches.length = this.unused.length = 0;
  }
}
