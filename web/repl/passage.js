/**
 * An input with what was printed for it, or a note. Its beginning and its end are drawn. What lies between is folded away under
 * a line that says how much that is, and from which more of it can be drawn, or all of it saved. Where even that is too much,
 * the oldest of it is dropped.
 */

import { Pen } from "./ansi.js";
import { Block, Blocks, Picture } from "./block.js";

// Characters, with some more for each block.
const HEAD = 20_000;
const TAIL = 80_000;
const FOLDED = 5_000_000;
const MORE = 80_000; // drawn by one press of the button
const SPARE = FOLDED / 10; // dropped at once, for many small steps would take long
const DOWNLOAD = 10_000; // milliseconds in which a download has begun

const some = (value, name) => `${value.toLocaleString("en")} ${name}${value === 1 ? "" : "s"}`;

/** How much text that is, in words. */
export function amount({ lines, characters }) {
  return lines ? `${some(lines, "line")} (${some(characters, "character")})` : some(characters, "character");
}

export function plus(one, other) {
  return { lines: one.lines + other.lines, characters: one.characters + other.characters };
}

export class Passage {
  #head = new Blocks();
  #folded = new Blocks();
  #tail = new Blocks();
  #open = null; // the block that printing goes on in, the last one
  #dropped = { lines: 0, characters: 0 };
  #fold = null; // the line between head and tail
  #changed;
  #pens = {}; // by kind of block: the style in which it goes on

  /** `changed` is called with it when the reader asks for more. */
  constructor(changed) {
    this.#changed = changed;
  }

  /** What is kept of it, and what of that is on the page. */
  get weight() {
    return this.drawn + this.#folded.weight;
  }

  get drawn() {
    return this.#head.weight + this.#tail.weight + (this.#open?.weight ?? 0);
  }

  /** How much was printed, whether it is kept or not. */
  get printed() {
    const open = { lines: this.#open?.lines ?? 0, characters: this.#open?.size ?? 0 };
    const parts = [this.#dropped, this.#head, this.#folded, this.#tail, open];
    return parts.reduce(plus, { lines: 0, characters: 0 });
  }

  print(kind, text) {
    const pen = (this.#pens[kind] ??= new Pen());
    if (pen.isPlain && !text.includes("\x1b")) return this.#write(kind, text, null);
    for (const piece of pen.read(text)) {
      if (piece.text) this.#write(kind, piece.text, piece.style);
      else if (this.#open?.kind === kind) this.#open.erase(piece.erase);
    }
  }

  /** Bring the page up to date; a passage that was not on it yet comes last. */
  draw(parent) {
    let previous = null;
    for (const element of this.#elements()) {
      if (!element.isConnected) {
        if (previous) previous.after(element);
        else parent.append(element);
      }
      previous = element;
    }
  }

  /** Leave no more of it on the page than its first block and its last; whether it has more there. */
  shrink() {
    if (this.#head.blocks.length < 2 && !this.#tail.blocks.length) return false;
    const [first, ...rest] = [...this.#head.blocks, ...this.#folded.blocks, ...this.#tail.blocks];
    for (const block of rest) block.remove();
    this.#head = new Blocks([first]);
    this.#folded = new Blocks(rest);
    this.#tail = new Blocks();
    return true;
  }

  /** Take it off the page. */
  remove() {
    for (const element of this.#elements()) element.remove();
  }

  /** Put in what a value draws of itself. */
  picture(html) {
    this.#begin(new Picture(html));
  }

  #write(kind, text, style) {
    for (let from = 0; from < text.length; ) {
      if (this.#open?.kind !== kind || this.#open.isFull) this.#begin(new Block(kind));
      from = this.#open.write(text, from, style);
    }
  }

  #begin(block) {
    if (this.#open) {
      this.#open.close();
      this.#tail.push([this.#open]);
    }
    this.#open = block;
    const isFolded = () => this.#folded.blocks.length > 0 || this.#dropped.characters > 0;
    while (this.#tail.blocks.length && !isFolded() && this.#head.weight + this.#tail.blocks[0].weight <= HEAD) {
      this.#head.push(this.#tail.take());
    }
    while (this.#tail.weight > TAIL) {
      const blocks = this.#tail.take();
      for (const block of blocks) block.remove();
      this.#folded.push(blocks);
    }
    if (this.#folded.weight > FOLDED) {
      this.#dropped = plus(this.#dropped, new Blocks(this.#folded.take(SPARE)));
    }
  }

  #elements() {
    const drawn = (blocks) => blocks.map((block) => block.draw());
    const [head, tail] = [drawn(this.#head.blocks), drawn(this.#tail.blocks)];
    const last = this.#open ? [this.#open.draw()] : [];
    if (this.#folded.blocks.length || this.#dropped.characters) return [...head, this.#drawFold(), ...tail, ...last];
    this.#fold?.remove();
    this.#fold = null;
    return [...head, ...tail, ...last];
  }

  #drawFold() {
    this.#fold ??= this.#makeFold();
    const folded = this.#folded.characters ? [`${amount(this.#folded)} folded away`] : [];
    const dropped = this.#dropped.characters ? [`${amount(this.#dropped)} before dropped`] : [];
    this.#fold.firstChild.textContent = `⋯ ${[...folded, ...dropped].join("; ")} `;
    this.#fold.querySelector("button").disabled = !folded.length;
    return this.#fold;
  }

  #makeFold() {
    const fold = document.createElement("p");
    fold.className = "fold";
    fold.ariaLive = "off"; // its numbers change with every frame
    fold.append(document.createElement("span"));
    for (const [name, press] of [["Show more", () => this.#more()], ["Save all", () => this.#save()]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", press);
      fold.append(button, " ");
    }
    return fold;
  }

  #more() {
    this.#head.push(this.#folded.take(MORE));
    if (!this.#folded.blocks.length) this.#fold.parentElement.focus({ preventScroll: true }); // the button goes
    this.#changed(this);
  }

  /** Download the text as a file, which takes any length. */
  #save() {
    const dropped = new Block("quiet");
    dropped.write(`[${amount(this.#dropped)} dropped]`, 0);
    const gap = this.#dropped.characters ? [dropped] : [];
    const blocks = [...this.#head.blocks, ...gap, ...this.#folded.blocks, ...this.#tail.blocks, this.#open];
    // Blocks of one stream may be parts of one line; others begin a line, as on the page.
    const parts = blocks.map(({ kind, text }, index) => {
      const goesOn = !blocks[index + 1] || blocks[index + 1].kind === kind || text.endsWith("\n");
      return goesOn ? text : `${text}\n`;
    });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
    link.download = "output.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD);
  }
}
