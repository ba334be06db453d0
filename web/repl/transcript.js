/** Everything typed and printed, as text that can be selected, copied and read aloud. */

const MOST_BLOCKS = 2000;
const LONGEST_BLOCK = 100_000; // characters; a new block begins then, so that old ones can go

export class Transcript {
  #element;
  #scroller;
  #open = null; // the block that printing goes on in

  constructor(element, scroller) {
    this.#element = element;
    this.#scroller = scroller;
  }

  /** Add a block of its own: an input, a note. */
  block(kind, text) {
    this.#open = null;
    this.#append(kind, text);
  }

  /** Go on printing; writes to one stream that follow each other share a block. */
  print(kind, text) {
    if (this.#open?.className === kind && this.#open.textContent.length < LONGEST_BLOCK) {
      this.#keepAtEnd(() => this.#open.append(text));
    } else {
      this.#open = this.#append(kind, text);
    }
  }

  clear() {
    this.#element.replaceChildren();
    this.#open = null;
  }

  scrollToEnd() {
    this.#scroller.querySelector(".prompt").scrollIntoView({ block: "nearest" });
  }

  #append(kind, text) {
    const block = document.createElement("pre");
    block.className = kind;
    block.textContent = text;
    this.#keepAtEnd(() => {
      this.#element.append(block);
      while (this.#element.childElementCount > MOST_BLOCKS) this.#element.firstElementChild.remove();
    });
    return block;
  }

  /** Change something; whoever has scrolled up to read stays there. */
  #keepAtEnd(change) {
    const prompt = this.#scroller.querySelector(".prompt").getBoundingClientRect();
    const visible = prompt.top < this.#scroller.getBoundingClientRect().bottom;
    change();
    if (visible) this.scrollToEnd();
  }
}
