/**
 * Everything typed and printed, as text that can be selected, copied and read aloud. Printing only takes note of the text; the
 * page is brought up to date once a frame, and holds no more than can be laid out quickly.
 */

import { Passage, amount, plus } from "./passage.js";

// Characters, with some more for each block.
const DRAWN = 1_000_000;
const KEPT = 20_000_000;
const LATE = 250; // milliseconds after which it is drawn without a frame: a page that is not seen has none

export class Transcript {
  #element;
  #scroller;
  #passages = [];
  #changed = new Set(); // since the last frame
  #frame = 0;
  #timer = 0;
  #dropped = { lines: 0, characters: 0 }; // with passages that are gone
  #note = null; // the line that says so

  constructor(element, scroller) {
    this.#element = element;
    this.#scroller = scroller;
  }

  /** Begin a passage: an input, a note. */
  block(kind, text) {
    this.#passages.push(new Passage((passage) => this.#drawSoon(passage)));
    this.print(kind, text);
  }

  /** Go on printing. */
  print(kind, text) {
    if (!this.#passages.length) return this.block(kind, text);
    const passage = this.#passages.at(-1);
    passage.print(kind, text);
    this.#drawSoon(passage);
  }

  /** Show what a value draws of itself. */
  picture(html) {
    const passage = this.#passages.at(-1);
    passage.picture(html);
    this.#drawSoon(passage);
  }

  /** Show now what the next frame would. */
  draw() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
    if (!this.#changed.size) return;
    this.#keepAtEnd(() => {
      for (const passage of this.#changed) passage.draw(this.#element);
      this.#changed.clear();
      this.#bound();
    });
  }

  clear() {
    this.#element.replaceChildren();
    this.#passages = [];
    this.#changed.clear();
    this.#dropped = { lines: 0, characters: 0 };
    this.#note = null;
  }

  scrollToEnd() {
    this.#scroller.querySelector(".prompt").scrollIntoView({ block: "nearest" });
  }

  #drawSoon(passage) {
    this.#changed.add(passage);
    this.#frame ||= requestAnimationFrame(() => this.draw());
    this.#timer ||= setTimeout(() => this.draw(), LATE);
  }

  /** Fold the oldest passages further where there is too much, and let them go where that is not enough. */
  #bound() {
    let [drawn, kept] = [0, 0];
    for (const passage of this.#passages) {
      drawn += passage.drawn;
      kept += passage.weight;
    }
    for (const passage of this.#passages.slice(0, -1)) {
      if (drawn <= DRAWN) break;
      const before = passage.drawn;
      if (!passage.shrink()) continue;
      passage.draw(this.#element);
      drawn += passage.drawn - before;
    }
    while ((drawn > DRAWN || kept > KEPT) && this.#passages.length > 1) {
      const passage = this.#passages.shift();
      drawn -= passage.drawn;
      kept -= passage.weight;
      this.#dropped = plus(this.#dropped, passage.printed);
      passage.remove();
    }
    if (this.#dropped.characters) this.#drawNote();
  }

  #drawNote() {
    if (this.#note === null) {
      this.#note = document.createElement("p");
      this.#note.className = "fold";
      this.#element.prepend(this.#note);
    }
    this.#note.textContent = `⋯ ${amount(this.#dropped)} before dropped`;
  }

  /** Change something; whoever has scrolled up to read stays there. */
  #keepAtEnd(change) {
    const prompt = this.#scroller.querySelector(".prompt").getBoundingClientRect();
    const visible = prompt.top < this.#scroller.getBoundingClientRect().bottom;
    change();
    if (visible) this.scrollToEnd();
  }
}
