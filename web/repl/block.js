/**
 * A stretch of one stream's text, short enough that the page lays it out again within a frame. Text is put in as a terminal
 * shows it: what follows a carriage return overwrites its line from the start.
 */

import { styled } from "./ansi.js";
import { highlighted } from "./highlight.js";

const FULL = 8_000; // characters from which on the next line begins another block
const LONGEST = 16_000; // a line that is longer goes on in another block
const OVERHEAD = 100; // what a block weighs besides its characters

export class Block {
  #lines = ""; // those that have ended
  #line = ""; // the one that is being written
  #column = 0;
  #runs = []; // of the lines that have ended: [from, to, style]
  #styles = null; // of each character of the line that is being written, once one of them has a style
  #element = null;
  #isDrawn = false; // as it is now

  constructor(kind) {
    this.kind = kind;
  }

  get text() {
    return this.#lines + this.#line;
  }

  get size() {
    return this.#lines.length + this.#line.length;
  }

  get weight() {
    return this.size + OVERHEAD;
  }

  get isFull() {
    return this.size >= (this.#line ? LONGEST : FULL);
  }

  /** How many line ends it has. */
  get lines() {
    return this.text.split("\n").length - 1;
  }

  /** Put in what fits of the text from a position on, at least a character; where the rest begins. */
  write(text, from, style = null) {
    let end = Math.min(text.length, from + LONGEST - this.size);
    if (end < text.length) {
      const lines = text.slice(from, end).lastIndexOf("\n") + 1;
      if (lines) end = from + lines;
      else if (/[\ud800-\udbff]/.test(text[end - 1])) end += 1; // the halves of a character stay together
    }
    const [first, ...more] = text.slice(from, end).split("\n");
    this.#overwrite(first, style);
    for (const line of more) {
      this.#endLine("\n");
      this.#overwrite(line, style);
    }
    this.#isDrawn = false;
    return end;
  }

  /** Nothing more comes: keep the text in one piece, without the small ones that it was made of. */
  close() {
    this.#endLine("");
    this.#lines = [this.#lines, ""].join("");
  }

  /** Take a part of the line away: 0 what follows the cursor, 1 what precedes it, 2 all. */
  erase(part) {
    const kept = part === 0 ? this.#line.slice(0, this.#column) : "";
    const rest = part === 1 ? this.#line.slice(this.#column) : "";
    this.#line = kept + (part ? " ".repeat(this.#column) : "") + rest;
    this.#styles?.splice(this.#line.length);
    if (part) this.#styles?.fill(null, 0, this.#column);
    this.#isDrawn = false;
  }

  /** The element that shows it, up to date. */
  draw() {
    if (this.#element === null) {
      this.#element = document.createElement("pre");
      this.#element.className = this.kind;
    }
    if (!this.#isDrawn) this.#element.replaceChildren(...this.#nodes());
    this.#isDrawn = true;
    return this.#element;
  }

  /** Take it off the page; it can be drawn again. */
  remove() {
    this.#element?.remove();
    this.#element = null;
    this.#isDrawn = false;
  }

  #nodes() {
    const input = this.kind === "input" && highlighted(this.text);
    if (input) return input;
    const [text, nodes] = [this.text, []];
    let from = 0;
    for (const [start, end, style] of [...this.#runs, ...runs(this.#styles, this.#lines.length)]) {
      if (start > from) nodes.push(text.slice(from, start));
      nodes.push(styled(text.slice(start, end), style));
      from = end;
    }
    return [...nodes, text.slice(from)];
  }

  #endLine(end) {
    this.#runs.push(...runs(this.#styles, this.#lines.length));
    this.#lines += this.#line + end;
    this.#line = "";
    this.#column = 0;
    this.#styles = null;
  }

  #overwrite(text, style) {
    for (const [index, piece] of text.split("\r").entries()) {
      if (index) this.#column = 0;
      const end = this.#column + piece.length;
      if (style && piece) this.#styles ??= Array(this.#line.length).fill(null);
      if (this.#column === this.#line.length) this.#line += piece;
      else this.#line = this.#line.slice(0, this.#column) + piece + this.#line.slice(end);
      if (this.#styles) for (let at = this.#column; at < end; at++) this.#styles[at] = style;
      this.#column = end;
    }
  }
}

/** Stretches of one style in a line that begins at an offset: [from, to, style]. */
function runs(styles, offset) {
  const found = [];
  for (let from = 0, to = 0; from < (styles?.length ?? 0); from = to) {
    for (to = from; to < styles.length && styles[to] === styles[from]; to++);
    if (styles[from]) found.push([offset + from, offset + to, styles[from]]);
  }
  return found;
}

const LOOK = `<!doctype html><meta name="color-scheme" content="light dark"><style>
body { margin: 0; overflow: hidden } .pellucid-values { display: none }
table { border-collapse: collapse } td, th { padding: 2px 8px } svg, img { max-width: 100% }
</style>`;

/** What a value draws of itself: HTML in a frame of its own, in which no script runs. */
export class Picture {
  kind = "picture";
  text = "";
  size = 0;
  lines = 0;
  isFull = true;
  #html;
  #element = null;

  constructor(html) {
    this.#html = html;
  }

  get weight() {
    return this.#html.length + OVERHEAD;
  }

  close() {}

  draw() {
    if (this.#element !== null) return this.#element;
    const frame = document.createElement("iframe");
    frame.className = this.kind;
    frame.title = "What the value looks like";
    frame.sandbox = "allow-same-origin"; // to measure it; scripts are not allowed
    frame.srcdoc = LOOK + this.#html;
    frame.addEventListener("load", () => {
      const { body } = frame.contentDocument;
      const fit = () => (frame.style.height = `${Math.min(body.scrollHeight, 2000)}px`);
      body.addEventListener("toggle", fit, true); // a fold
      new ResizeObserver(fit).observe(body);
      fit();
    });
    return (this.#element = frame);
  }

  remove() {
    this.#element?.remove();
    this.#element = null;
  }
}

/** Blocks that follow each other, with what they come to. */
export class Blocks {
  blocks = [];
  weight = 0;
  lines = 0;
  characters = 0;

  constructor(blocks = []) {
    this.push(blocks);
  }

  push(blocks) {
    for (const block of blocks) {
      this.blocks.push(block);
      this.#count(block, 1);
    }
  }

  /** Take blocks from the beginning: one at least, and as many as together stay within a weight. */
  take(most = 0) {
    let [number, weight] = [0, 0];
    while (number < this.blocks.length && (number === 0 || weight + this.blocks[number].weight <= most)) {
      weight += this.blocks[number++].weight;
    }
    const taken = this.blocks.splice(0, number);
    for (const block of taken) this.#count(block, -1);
    return taken;
  }

  #count(block, sign) {
    this.weight += sign * block.weight;
    this.lines += sign * block.lines;
    this.characters += sign * block.size;
  }
}
