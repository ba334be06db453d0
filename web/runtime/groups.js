// Bind groups, cached by (layout, buffers). Making one costs more than a dispatch, so a hit must not allocate.

const MOST_GROUPS = 8192;

/** A cached bind group and what it was made of. */
class Group {
  constructor(hash, layout, blocks, bindGroup) {
    this.hash = hash;
    this.layout = layout;
    this.blocks = blocks;
    this.bindGroup = bindGroup;
    this.next = null;
  }
}

/** Hash table from (layout, blocks) to bind group; an entry goes when one of its buffers is destroyed. */
export class Groups {
  constructor(device, bindingLimit) {
    this.device = device;
    this.bindingLimit = bindingLimit - (bindingLimit % 4);
    this.chains = new Map();
    this.count = 0;
    this.made = 0;
  }

  /** The group for the first `layout.count` of `blocks` (an array that the caller reuses). */
  find(layout, blocks) {
    let hash = Math.imul(layout.id, 0x9e3779b1);
    for (let i = 0; i < layout.count; i++) hash = Math.imul(hash ^ blocks[i].id, 0x01000193);
    for (let group = this.chains.get(hash); group !== undefined && group !== null; group = group.next) {
      if (group.layout === layout && sameBlocks(group.blocks, blocks)) return group;
    }
    return this.#make(hash, layout, blocks.slice(0, layout.count));
  }

  /** Drop every group that binds `block`, which is about to be destroyed. */
  forget(block) {
    if (block.groups === null) return;
    for (const group of [...block.groups]) this.#drop(group);
  }

  #make(hash, layout, blocks) {
    while (this.count >= MOST_GROUPS) this.#drop(this.chains.values().next().value);
    const entries = blocks.map((block, binding) => ({
      binding,
      resource: { buffer: block.buffer, size: Math.min(block.bytes, this.bindingLimit) },
    }));
    const bindGroup = this.device.createBindGroup({ label: layout.label, layout: layout.gpu, entries });
    const group = new Group(hash, layout, blocks, bindGroup);
    group.next = this.chains.get(hash) ?? null;
    this.chains.set(hash, group);
    for (const block of blocks) (block.groups ??= new Set()).add(group);
    this.count++;
    this.made++;
    return group;
  }

  #drop(group) {
    const head = this.chains.get(group.hash);
    if (head === group) {
      if (group.next === null) this.chains.delete(group.hash);
      else this.chains.set(group.hash, group.next);
    } else {
      let before = head;
      while (before.next !== group) before = before.next;
      before.next = group.next;
    }
    for (const block of group.blocks) block.groups.delete(group);
    // Launches may still point here: the empty list makes sure that they never match it again.
    group.blocks = [];
    group.bindGroup = null;
    this.count--;
  }
}

/** Whether the first of `blocks` are those cached. */
export function sameBlocks(cached, blocks) {
  for (let i = 0; i < cached.length; i++) if (cached[i] !== blocks[i]) return false;
  return true;
}
