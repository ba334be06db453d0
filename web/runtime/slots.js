// The table of slots: which exist, how many bytes each has, which block of memory it got at its first use.

/** Slots over a pool. The stream's inner loop reads `blocks` directly. */
export class Slots {
  constructor(pool) {
    this.pool = pool;
    this.blocks = []; // null before a slot's first use and after its end
    this.sizes = []; // -1 where no slot is
  }

  has(slot) {
    return (this.sizes[slot] ?? -1) >= 0;
  }

  declare(slot, nbytes) {
    while (this.blocks.length <= slot) {
      this.blocks.push(null);
      this.sizes.push(-1);
    }
    if (this.sizes[slot] >= 0) throw new Error(`slot ${slot} exists already`);
    this.sizes[slot] = nbytes;
  }

  /** The block of a slot; memory is found here. */
  block(slot) {
    return this.blocks[slot] ?? this.#materialize(slot);
  }

  /** End a slot; records that follow may reuse its block. */
  release(slot) {
    // A slot whose first bytes were to come by `write` does not exist when that write was given up.
    if (!this.has(slot)) return;
    if (this.blocks[slot] !== null) this.pool.give(this.blocks[slot]);
    this.blocks[slot] = null;
    this.sizes[slot] = -1;
  }

  /** Forget all slots: their device is gone. */
  clear() {
    this.blocks.length = this.sizes.length = 0;
  }

  #materialize(slot) {
    if (!this.has(slot)) throw new Error(`slot ${slot} does not exist`);
    return (this.blocks[slot] = this.pool.take(this.sizes[slot]));
  }
}

/** Throws when a range of bytes does not lie inside a block. */
export function checkRange(what, offset, nbytes, block) {
  if (offset + nbytes > block.bytes) {
    throw new RangeError(`${what}: ${nbytes} bytes at ${offset} do not fit a block of ${block.bytes}`);
  }
}
