// The encoder: interprets the commands of a window and encodes them into submissions.
// The commands and their meaning are in docs/design.md, "The stream".

import { ARENA_BYTES, Arena, Staging } from "./arena.js";
import {
  ALLOC,
  CODE_BITS,
  CODE_MASK,
  COPY,
  FREE,
  LENGTHS,
  RUN,
  UPLOAD,
  commandLength,
  commandName,
  dataLength,
} from "./commands.js";
import { sameBlocks } from "./groups.js";
import { checkRange } from "./slots.js";

// Words of each command without data: constants, because they are read once for each.
const { [ALLOC]: ALLOC_WORDS, [FREE]: FREE_WORDS, [UPLOAD]: UPLOAD_WORDS, [COPY]: COPY_WORDS } = LENGTHS;

// A long window goes out in pieces, so that the GPU starts early and the page's compositor gets its turn.
const MOST_DISPATCHES = 1024;

/** What is encoded and not submitted yet. Between two calls of the stream only a window that is held for a read is open. */
export class Encoder {
  /** `stream`: whose device, launches, slots and pool these are. */
  constructor({ device, faults, groups, pipelines, backlog, pool, slots, launches }) {
    Object.assign(this, { device, faults, groups, backlog, pool, slots, launches });
    this.queue = device.queue;
    this.scratch = [];
    this.serial = 1; // of the submission
    this.commands = null; // WebGPU's encoder of the submission
    this.watched = false; // whether errors of the submission are caught in a scope of its own
    this.pass = null;
    this.encoded = 0;
    this.boundPipeline = this.boundGroup = this.lastLaunch = null;
    this.turn = 0; // the word of the last run of a launch that takes turns
    this.at = 0;
    this.arena = new Arena(device, pipelines);
    this.staging = new Staging(device);
    this.timestamps = null; // while dispatches are timed, each in a pass of its own
    this.timed = false;
    this.counts = { dispatches: 0, submits: 0, passes: 0, uploads: 0 };
  }

  /**
   * Encode a window. A command that fails is left out. Returns the first error; and the pipeline of a launch that has to
   * wait for it, with `at` where that launch is.
   */
  encode(words) {
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
    return { pipeline, failure };
  }

  /** Interpret a window from a command on. Returns the pipeline of a launch that has to wait for it, or null. */
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
          const { pipeline, count, patches, turn } = launch;
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
          if (params.length > 0 && (launch !== this.lastLaunch || patches.length > 0 || turn >= 0)) {
            for (let i = 0; i < patches.length; i++) params[patches[i]] = words[at++];
            if (turn >= 0) this.turn = params[turn] = 1 - this.turn;
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
      this.staging.copy(this.open(), words.subarray(first, first + count), block.buffer, offset);
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
    const encoder = this.open();
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
  open(watched = true) {
    this.#closePass();
    if (this.commands === null) {
      this.watched = watched;
      if (watched) this.faults.open("validation");
      this.commands = this.device.createCommandEncoder();
    }
    return this.commands;
  }

  #openPass() {
    const writes = this.timestamps === null ? undefined : this.timestamps.begin();
    this.timed = writes !== undefined;
    this.pass = this.open().beginComputePass(writes);
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
  settle() {
    this.#finish();
    this.pool.settle();
  }

  /** Submit what is encoded. */
  #finish() {
    this.#closePass();
    this.serial++;
    if (this.commands === null) return;
    if (this.timestamps !== null) this.timestamps.resolve(this.commands);
    this.arena.write(this.queue);
    this.staging.write(this.queue);
    this.queue.submit([this.commands.finish()]);
    if (this.watched) this.faults.close((message) => message);
    this.commands = null;
    this.encoded = 0;
    this.counts.submits++;
  }
}
