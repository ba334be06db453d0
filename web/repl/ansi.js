/**
 * ANSI escape sequences in what is printed: colours, styles and erased lines. All others are taken out.
 *
 * A style is an object { classes, color, background }, the same one as long as it holds; null where text is plain. Classes are
 * `ansi-bold`, `ansi-fg-4` and the like; colours beyond the sixteen are in `color` and `background`.
 */

const CSI = "\\x1b\\[([0-?]*)[ -/]*([@-~])";
const OSC = "\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)"; // titles, links
const OTHER = "\\x1b[ -/]*[0-Z\\\\^-~]";
const SEQUENCE = new RegExp(`${CSI}|${OSC}|${OTHER}`, "g");
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[ -/]*)$/;
const LONGEST = 4096; // characters of a sequence that may still be coming

const ON = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };

/** The state of one stream: the style that holds, and a sequence of which only the beginning has come. */
export class Pen {
  #set = new Set();
  #foreground = null;
  #background = null;
  #style = null;
  #rest = "";

  get isPlain() {
    return this.#style === null && !this.#rest;
  }

  /** Pieces of a text: { text, style }, or { erase } with what of the line goes: 0 what follows, 1 what precedes, 2 all. */
  *read(text) {
    const all = this.#rest + text;
    const cut = all.match(UNFINISHED);
    const isComing = cut !== null && cut[0].length < LONGEST;
    this.#rest = isComing ? cut[0] : "";
    const whole = isComing ? all.slice(0, cut.index) : all;
    let from = 0;
    for (const found of whole.matchAll(SEQUENCE)) {
      if (found.index > from) yield { text: whole.slice(from, found.index), style: this.#style };
      from = found.index + found[0].length;
      if (found[2] === "m") this.#select(found[1]);
      else if (found[2] === "K") yield { erase: Number(found[1] || 0) };
    }
    if (from < whole.length) yield { text: whole.slice(from), style: this.#style };
  }

  /** Select Graphic Rendition. */
  #select(parameters) {
    const codes = parameters.split(/[;:]/).map(Number);
    while (codes.length) {
      const code = codes.shift();
      if (code === 0) {
        this.#set.clear();
        this.#foreground = this.#background = null;
      } else if (ON[code]) this.#set.add(ON[code]);
      else if (OFF[code]) for (const name of OFF[code]) this.#set.delete(name);
      else if (code === 38) this.#foreground = extended(codes);
      else if (code === 48) this.#background = extended(codes);
      else if (code === 39) this.#foreground = null;
      else if (code === 49) this.#background = null;
      else if (code >= 30 && code <= 37) this.#foreground = code - 30;
      else if (code >= 90 && code <= 97) this.#foreground = code - 82;
      else if (code >= 40 && code <= 47) this.#background = code - 40;
      else if (code >= 100 && code <= 107) this.#background = code - 92;
    }
    this.#style = this.#made();
  }

  #made() {
    const names = [...this.#set].filter((name) => name !== "inverse");
    const isInverse = names.length < this.#set.size;
    let [front, back] = [this.#foreground, this.#background];
    if (isInverse) [front, back] = [back ?? "var(--page)", front ?? "var(--text)"];
    if (!names.length && front === null && back === null) return null;
    if (typeof front === "number") names.push(`fg-${front}`);
    if (typeof back === "number") names.push(`bg-${back}`);
    const classes = names.map((name) => `ansi-${name}`).join(" ");
    return { classes, color: typeof front === "string" ? front : "", background: typeof back === "string" ? back : "" };
  }
}

/** The colour behind 38 or 48: one of 256 by number, or by red, green and blue. What it reads is taken off. */
function extended(codes) {
  const kind = codes.shift();
  if (kind === 2) return `rgb(${codes.splice(0, 3).map((part) => Math.min(255, part)).join(" ")})`;
  if (kind !== 5) return null;
  const number = codes.shift() ?? 0;
  if (number < 16) return number;
  if (number >= 232) return `rgb(${Array(3).fill(8 + 10 * (number - 232)).join(" ")})`;
  const level = (part) => (part ? 55 + 40 * part : 0);
  const index = number - 16;
  return `rgb(${[Math.floor(index / 36), Math.floor(index / 6) % 6, index % 6].map(level).join(" ")})`;
}

/** The element that shows a text in a style. */
export function styled(text, { classes, color, background }) {
  const element = document.createElement("span");
  element.className = classes;
  element.style.color = color;
  element.style.background = background;
  element.textContent = text;
  return element;
}
