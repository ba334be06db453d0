/** What was typed before, kept in the browser's own storage; pages without storage keep it while they are open. */

const KEY = "pellucid.repl.history";
const LONGEST = 500;
const CHARACTERS = 500_000; // of all entries together; a browser keeps some millions for a site

export class History {
  #entries = [];
  #position = 0;
  #draft = "";

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
      this.#entries = Array.isArray(kept) ? kept.filter((entry) => typeof entry === "string") : [];
    } catch {
      // Storage may be forbidden or hold something else; the history then begins empty.
    }
    this.#position = this.#entries.length;
  }

  add(text) {
    if (text.trim() && text !== this.#entries.at(-1)) this.#entries.push(text);
    this.#entries.splice(0, this.#entries.length - LONGEST);
    let [first, characters] = [this.#entries.length, 0];
    while (first > 0 && (characters += this.#entries[first - 1].length) <= CHARACTERS) first--;
    this.#entries.splice(0, first);
    this.#position = this.#entries.length;
    try {
      localStorage.setItem(KEY, JSON.stringify(this.#entries));
    } catch {
      // Full or forbidden: this session still has it.
    }
  }

  /** The entry before or after the current one, or null at either end; `text` is what stands in the editor now. */
  move(step, text) {
    const next = this.#position + step;
    if (next < 0 || next > this.#entries.length) return null;
    if (this.#position === this.#entries.length) this.#draft = text;
    this.#position = next;
    return next === this.#entries.length ? this.#draft : this.#entries[next];
  }
}
