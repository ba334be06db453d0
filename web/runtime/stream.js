// The stream: owns the GPU device and interprets windows of commands. Its interface is integers and typed arrays only.
// The commands and their meaning are in docs/design.md, "The stream".

import { openDevice } from "./adapter.js";
import { ARENA_BYTES, Arena, Staging } from "./arena.js";
import { Backlog } from "./backlog.js";
import { Buffers } from "./buffers.js";
import {
  ALLOC,
  CODE_BITS,
  CODE_MASK,
  COPY,
  FREE,
  LENGTHS,
  RUN,
  STATUS_BYTES,
  STATUS_SLOT,
  UPLOAD,
  commandLength,
  commandName,
  dataLength,
} from "./commands.js";
import { Faults } from "./faults.js";
import { Groups, sameBlocks } from "./groups.js";
import { makeLaunch } from "./launch.js";
import { Pipelines } from "./pipelines.js";
import { Pool } from "./pool.js";
import { Readback } from "./readback.js";
import { Slots, checkRange } from "./slots.js";
import { Timestamps, WindowTimes } from "./timestamps.js";
import { Uploads } from "./uploads.js";

// Words of each command without data: constants, because they are read once for each.
const { [ALLOC]: ALLOC_WORDS, [FREE]: FREE_WORDS, [UPLOAD]: UPLOAD_WORDS, [COPY]: COPY_WORDS } = LENGTHS;

// A long window goes out in pieces, so that the GPU starts early and the page's compositor gets its turn.
const MOST_DISPATCHES = 1024;

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
      this.#settle();
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
    this.scratch = [];
    this.changed = true; // whether the status may say something that no read took along
    this.work = 0; // windows and uploads so far
    this.done = 0; // how many of them are known to be done

    // The submission that is being encoded. Between two calls only a window that is held for a read is open.
    this.serial = 1;
    this.encoder = null;
    this.watched = false; // whether errors of the submission are caught in a scope of its own
    this.pass = null;
    this.encoded = 0;
    this.boundPipeline = this.boundGroup = this.lastLaunch = null;
    this.at = 0;

    this.arena = new Arena(device, this.pipelines);
    this.staging = new Staging(device);

    this.timestamps = null; // while dispatches are timed, each in a pass of its own
    this.windowTimes = null; // while windows are, where the device has no timestamps
    this.timed = false;
    this.timing = false; // when true, encodeMs sums the time spent in submit
    this.encodeMs = 0;
    this.counts = { dispatches: 0, submits: 0, passes: 0, uploads: 0 };
  }

  /** Id of a compute pipeline. `bindings`: a letter per binding of group 0, "r" read, "w" read_write. */
  pipeline(source, bindings, paramsBytes, immediate, label) {
    this.faults.alive();
    return this.pipelines.create(source, bindings, paramsBytes, immediate, label);
  }

  /** The same for a pipeline that is not needed at once: it is compiled beside other work. */
  pipelineLater(source, bindings, paramsBytes, immediate, label) {
    this.faults.alive();
    return this.pipelines.later(source, bindings, paramsBytes, immediate, label);
  }

  /** The same, compiled beside other work; resolves to the id. */
  async warm(source, bindings, paramsBytes, immediate, label) {
    this.faults.alive();
    return this.pipelines.warm(source, bindings, paramsBytes, immediate, label);
  }

  /** Id of a launch. `params`: bytes of the parameter block; `patches`: the words of it that each run brings. */
  launch(pipelineId, params, patches, x, y, z) {
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
    );
    if (launch.step > 0) launch.arenaGroup = this.arena.group(launch.step);
    const id = this.unused.pop() ?? this.launches.length;
    this.launches[id] = launch;
    return id;
  }

  /** End launches and pipelines that nobody runs any more; their ids are given out again. */
  forget(launches, pipelines) {
    // Windows that wait hold launches by their ids, and launches hold their pipelines.
    if (this.backlog.isWaiting) this.backlog.add(() => this.#forget(launches));
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
   * left out; its error is thrown at the end. Where it comes to a launch whose pipeline is still compiled, the rest waits,
   * and so do the calls that follow; `failure` tells their errors.
   */
  submit(words, held = false) {
    this.faults.alive();
    if (this.backlog.isWaiting) {
      this.#submitLater(words.slice(), held);
      return;
    }
    const { pipeline, failure } = this.#submit(words, held);
    if (pipeline !== null) {
      this.#submitLater(words.slice(this.at), held);
      this.backlog.wait(pipeline);
    }
    if (failure !== null) throw failure;
  }

  #submitLater(words, held) {
    let rest = words;
    const call = () => {
      const { pipeline, failure } = this.#submit(rest, held);
      if (failure !== null) this.faults.add(failure.message);
      if (pipeline !== null) rest = rest.subarray(this.at);
      return pipeline;
    };
    this.backlog.add(call, words.byteLength);
  }

  /** The first error; and a pipeline that is still compiled, with `at` where the launch is that needs it. */
  #submit(words, held) {
    this.changed = true;
    this.work++;
    const started = this.timing || this.windowTimes !== null ? performance.now() : 0;
    let failure = null;
    let pipeline = null;
    for (let at = 0; at < words.length;) {
      try {
        pipeline = this.#interpret(words, at);
        at = words.length;
      } catch (error) {
        failure ??= new Error(`${commandName(words, this.at, this.launches)}: ${error.message}`);
        this.#unbind();
        at = this.at + commandLength(words, this.at, this.launches);
      }
    }
    // A window that is timed begins where it is submitted.
    if (!held || failure !== null || pipeline !== null || this.windowTimes !== null) this.#settle();
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
    if (this.backlog.isWaiting) {
      const kept = bytes.slice();
      this.backlog.add(() => this.#write(slot, nbytes, offset, kept), kept.length);
    } else {
      this.#write(slot, nbytes, offset, bytes);
    }
  }

  #write(slot, nbytes, offset, bytes) {
    this.#settle(); // an interrupt may have kept the read from which a window was held
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
    this.counts.uploads++;
  }

  /** Begin a read, behind everything submitted or held; the ticket is for `arrival`, `take` and `drop`. */
  fetch(slot, offset, nbytes) {
    this.faults.alive();
    const ticket = this.readback.reserve();
    if (this.backlog.isWaiting) {
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
      const encoder = this.#openEncoder(this.faults.waiting.size > 0);
      read = this.readback.encode(encoder, block.buffer, offset, nbytes, status);
      this.changed = false;
    } finally {
      this.#settle(); // what is held goes out in any case
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
    this.#settle();
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
      this.timestamps?.destroy();
      this.timestamps = this.windowTimes = null;
    } else if (can) {
      this.timestamps ??= new Timestamps(this.device, this.readback);
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
    return (await (this.timestamps ?? this.windowTimes)?.take()) ?? new Float64Array(0);
  }

  /** Counters since the start, and buffers and bytes of now. */
  stats() {
    const { pool, counts } = this;
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
      compiling: this.pipelines.compiling,
      uploads: counts.uploads,
    };
  }

  /** Give the free blocks back to the device. */
  trim() {
    this.#settle();
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
    this.backlog.close();
    this.readback.close();
    this.device.destroy();
    this.slots = new Slots(this.pool);
    this.launches.length = this.unused.length = 0;
  }

  /** Interpret a window from a command on. Returns the pipeline of the launch that it comes to while that is compiled, or null. */
  #interpret(words, start) {
    const { launches, slots, scratch, arena, counts, timestamps } = this;
    const { blocks } = slots;
    const end = words.length;
    let at = start;
    while (at < end) {
      this.at = at;
      const head = words[at];
      const payload = head >>> CODE_BITS;
      switch (head & CODE_MASK) {
        case RUN: {
          const launch = launches[payload];
          if (launch === undefined) throw new Error("the window is damaged");
          const { pipeline, count, patches } = launch;
          if (pipeline.gpu === null) {
            if (this.backlog.holds(pipeline)) return pipeline;
            if (pipeline.broken === null) pipeline.finish();
          }
          if (this.encoded === MOST_DISPATCHES || arena.used + launch.step > ARENA_BYTES) this.#finish();
          const cached = launch.group.blocks;
          let hit = cached.length === count;
          at++;
          for (let i = 0; i < count; i++) {
            const slot = words[at++];
            const block = blocks[slot] ?? slots.block(slot);
            block.touched = this.serial;
            scratch[i] = block;
            if (hit && cached[i] !== block) hit = false;
          }
          if (!hit) this.#changeGroup(launch, words, at - count);
          const pass = this.pass ?? this.#openPass();
          if (pipeline !== this.boundPipeline) {
            if (pipeline.broken !== null) throw new Error("its pipeline could not be made");
            pass.setPipeline(pipeline.gpu);
            this.boundPipeline = pipeline;
          }
          if (launch.group !== this.boundGroup) {
            pass.setBindGroup(0, launch.group.bindGroup);
            this.boundGroup = launch.group;
          }
          const params = launch.words;
          if (params.length > 0 && (launch !== this.lastLaunch || patches.length > 0)) {
            for (let i = 0; i < patches.length; i++) params[patches[i]] = words[at++];
            if (launch.step === 0) pass.setImmediates(0, params);
            else arena.bind(pass, launch);
          }
          pass.dispatchWorkgroups(launch.x, launch.y, launch.z);
          this.lastLaunch = launch;
          this.encoded++;
          counts.dispatches++;
          if (timestamps !== null) this.#endTimed(payload);
          break;
        }
        case ALLOC:
          slots.declare(payload, words[at + 1]);
          at += ALLOC_WORDS;
          break;
        case FREE:
          slots.release(payload);
          at += FREE_WORDS;
          break;
        case UPLOAD:
          at += UPLOAD_WORDS + this.#upload(payload, words[at + 1], words[at + 2], words, at + UPLOAD_WORDS);
          break;
        case COPY:
          this.#copy(payload, words[at + 1], words[at + 2], words[at + 3], words[at + 4]);
          at += COPY_WORDS;
          break;
        default:
          throw new Error("no such record");
      }
    }
    return null;
  }

  /** Gives a launch the bind group of `scratch`: that of its run before the last, or a found one. */
  #changeGroup(launch, words, first) {
    const { before, count, pipeline } = launch;
    launch.before = launch.group;
    if (before.blocks.length === count && sameBlocks(before.blocks, this.scratch)) {
      launch.group = before;
      return;
    }
    const limit = this.groups.bindingLimit;
    for (let i = 0; i < count; i++) {
      const nbytes = this.slots.sizes[words[first + i]];
      if (nbytes > limit) {
        throw new RangeError(`binding ${i} has ${nbytes} bytes; this device binds at most ${limit}`);
      }
    }
    launch.group = this.groups.find(pipeline.layout, this.scratch);
  }

  #upload(slot, offset, nbytes, words, first) {
    const count = dataLength(nbytes);
    const block = this.slots.block(slot);
    checkRange("upload", offset, count * 4, block);
    this.counts.uploads++;
    if (count === 0) return 0;
    if (block.touched === this.serial && !this.staging.fits(count * 4)) this.#finish();
    if (block.touched === this.serial) {
      this.staging.copy(this.#openEncoder(), words.subarray(first, first + count), block.buffer, offset);
    } else {
      // No pending command uses the block, so overtaking them all changes nothing.
      this.queue.writeBuffer(block.buffer, offset, words, first, count);
    }
    return count;
  }

  #copy(source, target, sourceOffset, targetOffset, nbytes) {
    const from = this.slots.block(source);
    const to = this.slots.block(target);
    checkRange("copy from", sourceOffset, nbytes, from);
    checkRange("copy to", targetOffset, nbytes, to);
    if (nbytes === 0) return;
    const encoder = this.#openEncoder();
    from.touched = to.touched = this.serial;
    if (from !== to) {
      encoder.copyBufferToBuffer(from.buffer, sourceOffset, to.buffer, targetOffset, nbytes);
      return;
    }
    // WebGPU does not copy within one buffer.
    const between = this.pool.take(nbytes);
    between.touched = this.serial;
    encoder.copyBufferToBuffer(from.buffer, sourceOffset, between.buffer, 0, nbytes);
    encoder.copyBufferToBuffer(between.buffer, 0, to.buffer, targetOffset, nbytes);
    this.pool.give(between);
  }

  /** An encoder without an open pass, for a copy. `watched`: catch the errors of a submission that begins here. */
  #openEncoder(watched = true) {
    this.#closePass();
    if (this.encoder === null) {
      this.watched = watched;
      if (watched) this.faults.open("validation");
      this.encoder = this.device.createCommandEncoder();
    }
    return this.encoder;
  }

  #openPass() {
    const writes = this.timestamps === null ? undefined : this.timestamps.begin();
    this.timed = writes !== undefined;
    this.pass = this.#openEncoder().beginComputePass(writes);
    this.counts.passes++;
    return this.pass;
  }

  /** End the pass of a dispatch that is timed. */
  #endTimed(launch) {
    if (this.timed) this.timestamps.ran(launch);
    this.#closePass();
  }

  #closePass() {
    if (this.pass === null) return;
    this.pass.end();
    this.pass = null;
    this.#unbind();
  }

  #unbind() {
    this.boundPipeline = this.boundGroup = this.lastLaunch = null;
  }

  /** Submit what is encoded, and let go of blocks that are too many. */
  #settle() {
    this.#finish();
    this.pool.settle();
  }

  /** Submit what is encoded. */
  #finish() {
    this.#closePass();
    this.serial++;
    if (this.encoder === null) return;
    if (this.timestamps !== null) this.timestamps.resolve(this.encoder);
    this.arena.write(this.queue);
    this.staging.write(this.queue);
    this.queue.submit([this.encoder.finish()]);
    if (this.watched) this.faults.close((message) => message);
    this.encoder = null;
    this.encoded = 0;
    this.counts.submits++;
  }
}
