// Moves tensors from files at a distance (fetch.js) to a stream's slots, while Python is suspended.
// The desktop's twin is weights/pump.py in Python; both follow the same rules.

import { Room } from "./body.js";
import { number } from "./fetch.js";
import { Halt, fault } from "./halt.js";

const STAGING_BYTES = 1 << 20; // of one write; a multiple of 4
const BACKLOG_BYTES = 32 << 20; // written but not known to have reached the GPU

/** Columns of the plan's tables, as weights/source_browser.py writes them. */
const LANE_COLUMNS = 2; // first part, parts
const PART_COLUMNS = 5; // shard, start, stop, first row, rows
const ROW_COLUMNS = 6; // start, stop, slot, bytes of the slot, offset in the slot, item

/** Moves a plan's bytes to a stream: a few connections, each with one staging buffer and one room to read into. */
export class Load {
  /** `stream` has `write(slot, nbytes, offset, bytes)`, which copies, and may have `synchronize()`. The tables are Float64Arrays. */
  constructor(stream, shards, lanes, parts, rows, connections) {
    Object.assign(this, { stream, shards, lanes, parts, rows });
    this.halt = new Halt();
    this.nextLane = 0;
    this.bytesDone = 0;
    this.backlog = 0;
    this.drained = null;
    this.item = 0;
    this.error = null;
    const count = Math.max(1, Math.min(connections, lanes.length / LANE_COLUMNS));
    this.running = count;
    this.finished = Promise.all(Array.from({ length: count }, () => this.#connection()));
  }

  /** Resolves to [bytes done, item, 1 when finished else 0] after `milliseconds`, or at the end; rejects with the first error. */
  async next(milliseconds) {
    let timer;
    const pause = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)));
    await Promise.race([this.finished, pause]);
    clearTimeout(timer);
    if (this.error !== null) throw this.error;
    return [this.bytesDone, this.item, this.running === 0 ? 1 : 0];
  }

  /** Write nothing more, from now on. */
  close() {
    if (this.running > 0) this.halt.now();
  }

  async #connection() {
    const staging = new Uint8Array(STAGING_BYTES);
    const room = new Room();
    try {
      while (this.nextLane * LANE_COLUMNS < this.lanes.length) {
        const lane = this.nextLane++ * LANE_COLUMNS;
        const first = this.lanes[lane];
        for (let part = first; part < first + this.lanes[lane + 1]; part++)
          await this.#move(part * PART_COLUMNS, staging, room);
      }
    } catch (error) {
      this.error ??= error;
      this.halt.now();
    }
    this.running--;
  }

  /** Fetch one part. A row's writes are multiples of 4 bytes; its last one is padded with zeros. */
  async #move(part, staging, room) {
    const { parts, rows, halt } = this;
    const shard = this.shards[parts[part]];
    const stop = parts[part + 2];
    const end = (parts[part + 3] + parts[part + 4]) * ROW_COLUMNS;
    let at = parts[part + 1];
    let row = parts[part + 3] * ROW_COLUMNS;
    let held = 0;
    for await (const bytes of shard.chunks(at, stop, halt, room)) {
      for (let taken = 0; taken < bytes.length && row < end;) {
        const inside = at >= rows[row];
        const limit = inside ? Math.min(rows[row + 1] - at, STAGING_BYTES - held) : rows[row] - at;
        const step = Math.min(bytes.length - taken, limit);
        if (inside) {
          staging.set(bytes.subarray(taken, taken + step), held);
          held += step;
        }
        at += step;
        taken += step;
        if (inside && (held === STAGING_BYTES || at === rows[row + 1])) {
          row = this.#write(row, end, at - held, staging, held);
          held = 0;
        }
      }
      if (this.backlog >= BACKLOG_BYTES) await this.#drain();
    }
    if (row < end) {
      throw fault(
        "SourceError",
        `${shard.name}: ended at byte ${number(at)} of ${number(stop)}. The file is cut short; download it again.`,
      );
    }
  }

  /** Write `held` bytes that begin at byte `from` of the shard to each row of the range; the row to go on with. */
  #write(row, end, from, staging, held) {
    const { rows, stream } = this;
    this.halt.check();
    const padded = (held + 3) & ~3;
    staging.fill(0, held, padded);
    const bytes = staging.subarray(0, padded);
    const start = rows[row];
    let next = row;
    for (; next < end && rows[next] === start; next += ROW_COLUMNS) {
      stream.write(rows[next + 2], rows[next + 3], rows[next + 4] + from - start, bytes);
    }
    this.bytesDone += held;
    this.backlog += held;
    this.item = rows[row + 5];
    return from + held === rows[row + 1] ? next : row;
  }

  /** Wait until the GPU has what was written, so that copies do not pile up. */
  async #drain() {
    this.drained ??= Promise.resolve(this.stream.synchronize?.()).finally(() => (this.drained = null));
    this.backlog = 0;
    await this.drained;
  }
}
