// The pool of GPU buffers: which block a slot gets, which free blocks are kept, which are destroyed.
// The rules are those of docs/design.md, "Memory", and equal to the native host's, so both hosts give a window the same blocks.

const SMALLEST_STEP = 256;
const LARGEST_STEP = 256 << 10;
const STEPS_PER_OCTAVE = 16;
const KEPT_FLOOR = 512 * (1 << 20);
// The most live bytes are known of this many submissions, and of as many before them.
const EPOCH = 32;

/**
 * Size of the block that holds `nbytes`: sixteen steps per octave, which are 256 bytes to 256 KiB wide.
 */
export function blockBytes(nbytes) {
  const octave = 2 ** (31 - Math.clz32(Math.max(nbytes - 1, 1))); // the power of two below: octave < nbytes <= 2 * octave
  const step = Math.min(Math.max(octave / STEPS_PER_OCTAVE, SMALLEST_STEP), LARGEST_STEP);
  return Math.max(Math.ceil(nbytes / step), 1) * step;
}

/**
 * One GPU buffer. `touched` is the serial number of the last submission that uses it, `groups` are its bind groups;
 * a `broken` one never got its memory.
 */
export class Block {
  constructor(id, bytes) {
    this.id = id;
    this.bytes = bytes;
    this.buffer = null;
    this.broken = false;
    this.touched = 0;
    this.groups = null;
    this.older = null;
    this.newer = null;
  }
}

/** Free blocks of one size: a binary heap, on top the one that was made first. */
class Heap {
  constructor() {
    this.blocks = [];
  }

  push(block) {
    this.blocks.push(block);
    this.#rise(block, this.blocks.length - 1);
  }

  /** The block that was made first; undefined where there is none. */
  pop() {
    const first = this.blocks[0];
    if (first !== undefined) this.#remove(0);
    return first;
  }

  delete(block) {
    this.#remove(this.blocks.indexOf(block));
  }

  #remove(at) {
    const { blocks } = this;
    const last = blocks.pop();
    const count = blocks.length;
    if (at === count) return;
    for (let below = 2 * at + 1; below < count; below = 2 * at + 1) {
      if (below + 1 < count && blocks[below + 1].id < blocks[below].id) below++;
      blocks[at] = blocks[below];
      at = below;
    }
    this.#rise(last, at);
  }

  #rise(block, at) {
    const { blocks } = this;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (blocks[above].id < block.id) break;
      blocks[at] = blocks[above];
      at = above;
    }
    blocks[at] = block;
  }
}

/**
 * Free blocks by size, and by age across sizes. Of a size the block that was made first is taken: which one that is
 * depends on what is alive, not on the order in which the rest was freed. So a program that repeats itself gets the
 * blocks of its last round, and finds their bind groups, whatever was done between.
 *
 * Live and free blocks together stay below `keptFloor`, or below the sum over all sizes of what the last submissions
 * had alive of each at most, whichever is more: a program that repeats itself finds the blocks of its last round, since
 * new ones cost the time to fill them with zeros; one that shrinks gives them back some submissions later. What needs
 * its sizes one after the other keeps no more than twice what was alive at once.
 *
 * `create(block)` makes its GPU buffer; `forget(block)` is called before a block is destroyed.
 */
export class Pool {
  constructor({ create, forget, largest, keptFloor = KEPT_FLOOR }) {
    this.create = create;
    this.forget = forget;
    this.largest = largest - (largest % 4);
    this.keptFloor = keptFloor;
    this.free = new Map();
    this.oldest = null;
    this.newest = null;
    this.nextId = 1;
    this.liveBlocks = 0;
    this.liveBytes = 0;
    this.pooledBytes = 0;
    this.submissions = 0;
    // The most live bytes since this epoch began, and in the one before.
    this.peak = 0;
    this.peakBefore = 0;
    // Size -> live blocks, and the most of them.
    this.live = new Map();
    this.most = new Map();
    this.mostBefore = new Map();
  }

  /** A block for `nbytes`: the free one of its size that was made first, if there is one. */
  take(nbytes) {
    if (nbytes > this.largest) {
      throw new RangeError(
        `a buffer of ${nbytes} bytes exceeds this device's limit maxBufferSize, ${this.largest}`,
      );
    }
    const bytes = Math.min(blockBytes(nbytes), this.largest);
    let block = this.#reuse(bytes);
    if (block === undefined) {
      block = new Block(this.nextId++, bytes);
      block.buffer = this.create(block);
    }
    this.liveBlocks++;
    this.liveBytes += bytes;
    if (this.liveBytes > this.peak) this.peak = this.liveBytes;
    const alive = (this.live.get(bytes) ?? 0) + 1;
    this.live.set(bytes, alive);
    if (alive > (this.most.get(bytes) ?? 0)) this.most.set(bytes, alive);
    return block;
  }

  /** Take back a block whose slot is gone; records that follow may reuse it at once. */
  give(block) {
    let same = this.free.get(block.bytes);
    if (same === undefined) this.free.set(block.bytes, (same = new Heap()));
    same.push(block);
    block.older = this.newest;
    if (this.newest === null) this.oldest = block;
    else this.newest.newer = block;
    this.newest = block;
    this.live.set(block.bytes, this.live.get(block.bytes) - 1);
    this.liveBlocks--;
    this.liveBytes -= block.bytes;
    this.pooledBytes += block.bytes;
  }

  /** Destroy the oldest free blocks beyond the cap. After every submission: an encoded command may use a free block. */
  settle() {
    if (this.pooledBytes + this.liveBytes > this.keptFloor) {
      const cap = this.#cap();
      while (this.pooledBytes + this.liveBytes > cap && this.oldest !== null) this.#destroyOldest();
    }
    if (++this.submissions % EPOCH === 0) {
      this.peakBefore = this.peak;
      this.peak = this.liveBytes;
      for (const [bytes, count] of this.live) if (count === 0) this.live.delete(bytes);
      this.mostBefore = this.most;
      this.most = new Map(this.live);
    }
  }

  #cap() {
    let repeated = 0;
    for (const [bytes, count] of this.most) repeated += bytes * Math.max(count, this.mostBefore.get(bytes) ?? 0);
    for (const [bytes, count] of this.mostBefore) if (!this.most.has(bytes)) repeated += bytes * count;
    return Math.max(this.keptFloor, Math.min(repeated, 2 * Math.max(this.peak, this.peakBefore)));
  }

  /** Destroy every free block. Only between submissions. */
  trim() {
    while (this.oldest !== null) this.#destroyOldest();
  }

  #reuse(bytes) {
    const same = this.free.get(bytes);
    for (let block = same?.pop(); block !== undefined; block = same.pop()) {
      this.#unlink(block);
      this.pooledBytes -= bytes;
      if (!block.broken) return block;
      this.forget(block);
      block.buffer.destroy();
    }
    return undefined;
  }

  #destroyOldest() {
    const block = this.oldest;
    this.free.get(block.bytes).delete(block);
    this.#unlink(block);
    this.pooledBytes -= block.bytes;
    this.forget(block);
    block.buffer.destroy();
  }

  #unlink(block) {
    if (block.older === null) this.oldest = block.newer;
    else block.older.newer = block.newer;
    if (block.newer === null) this.newest = block.older;
    else block.newer.older = block.older;
    block.older = block.newer = null;
  }
}
