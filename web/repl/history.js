/** What was typed before, kept in the browser's own storage; pages without storage keep it while they are open. */

const KEY = "pellucid.repl.history";
const LONGEST = 500;

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
