/**
 * The line being typed: a text area that grows, with history, completion and indentation.
 *
 *   new Editor({ editor, list, hint, mark }, { enter(whole), complete(before) })
 *
 * `enter` is told `whole` when the text must not be continued; `complete` gives a promise of { matches, start, help }.
 */

import { History } from "./history.js";

const INDENT = "    ";
const MOST_SHOWN = 200; // completions; a longer list takes seconds to lay out

export class Editor {
  #area;
  #list;
  #hint; // shows the signature of the call that is open
  #mark;
  #actions;
  #history = new History();
  #choice = null; // { matches, start, end, index } while completions are shown
  #frame = 0; // in which the text area takes the size of its text
  #leaving = false; // Esc was pressed, so Tab moves the focus as everywhere else

  constructor({ editor, list, hint, mark }, actions) {
    [this.#area, this.#list, this.#hint, this.#mark, this.#actions] = [editor, list, hint, mark, actions];
    editor.addEventListener("keydown", (event) => this.#key(event));
    editor.addEventListener("input", () => this.#changed());
    editor.addEventListener("paste", (event) => this.#paste(event));
    editor.addEventListener("blur", () => this.#closeList());
    list.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the focus stays in the editor
      const item = event.target.closest("li");
      if (item?.dataset.index) this.#accept(Number(item.dataset.index));
    });
  }

  get text() {
    return this.#area.value;
  }

  set text(value) {
    this.#area.value = value;
    this.#area.setSelectionRange(value.length, value.length);
    this.#changed();
  }

  set enabled(value) {
    this.#area.disabled = !value;
  }

  /** The marks before the lines: `first`, then dots; or the prompt of `input`. */
  set prompt(first) {
    this.#mark.dataset.first = first;
    this.#resizeSoon();
  }

  /** Do what a key does, for whoever has no such key. */
  press(key) {
    this.focus();
    if (key === "Tab") this.#tab();
    else if (key === "Enter") this.#replace(this.#area.selectionStart, this.#area.selectionEnd, "\n");
    else this.#recall(key === "ArrowUp" ? -1 : 1);
  }

  focus() {
    this.#area.focus({ preventScroll: true });
  }

  remember(text) {
    this.#history.add(text);
  }

  /** Put text at a position; a cursor behind it moves along. */
  insert(position, text) {
    const { selectionStart } = this.#area;
    this.#area.setRangeText(text, position, position, selectionStart >= position ? "end" : "preserve");
    if (selectionStart > position) this.#area.setSelectionRange(selectionStart + text.length, selectionStart + text.length);
    this.#changed();
  }

  /** An example pasted with its prompts and outputs goes in without them. */
  #paste(event) {
    const text = event.clipboardData.getData("text/plain").replaceAll("\r\n", "\n");
    if (!/^\s*>>>( |$)/m.test(text.split("\n").find((line) => line.trim()) ?? "")) return;
    event.preventDefault();
    const typed = text.split("\n").map((line) => line.trimStart()).filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
    const plain = typed.map((line) => line.slice(4)).join("\n");
    this.#replace(this.#area.selectionStart, this.#area.selectionEnd, plain);
  }

  #key(event) {
    const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (this.#choice && plain && this.#listKey(event)) return;
    const leaving = this.#leaving;
    this.#leaving = event.key === "Escape";
    if (this.#leaving) this.#hint.hidden = true;
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.#actions.enter(event.ctrlKey || event.metaKey);
    } else if (event.key === "Tab" && plain && !event.shiftKey && !leaving) {
      event.preventDefault();
      this.#tab();
    } else if (plain && !event.shiftKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      if (this.#recall(event.key === "ArrowUp" ? -1 : 1)) event.preventDefault();
    } else if (event.key === "Backspace" && plain) {
      if (this.#unindent()) event.preventDefault();
    }
  }

  /** Keys while completions are shown; true when the key was used up. */
  #listKey(event) {
    const { matches, index } = this.#choice;
    const step = { ArrowDown: 1, ArrowUp: -1, Tab: event.shiftKey ? -1 : 1 }[event.key];
    if (step) this.#select((index + step + matches.length) % matches.length);
    else if (event.key === "Enter") this.#accept(index);
    else if (event.key === "Escape") this.#closeList();
    else return false;
    event.preventDefault();
    return true;
  }

  /** History, where the cursor cannot move further in the text itself. */
  #recall(step) {
    const { value, selectionStart, selectionEnd } = this.#area;
    const beyond = step < 0 ? value.slice(0, selectionStart) : value.slice(selectionEnd);
    if (selectionStart !== selectionEnd || beyond.includes("\n")) return false;
    const entry = this.#history.move(step, value);
    if (entry !== null) this.text = entry;
    return entry !== null;
  }

  /** Backspace in the indentation takes one level away. */
  #unindent() {
    const { value, selectionStart, selectionEnd } = this.#area;
    const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
    if (selectionStart !== selectionEnd || !/^ {4,}$/.test(line)) return false;
    this.#replace(selectionStart - (line.length % 4 || 4), selectionStart, "");
    return true;
  }

  async #tab() {
    const { value, selectionStart: end } = this.#area;
    if (!value && this.#area.placeholder) {
      this.text = this.#area.placeholder;
      return;
    }
    const line = value.slice(value.lastIndexOf("\n", end - 1) + 1, end);
    if (!line.trim()) {
      this.#replace(end, end, INDENT.slice(line.length % 4));
      return;
    }
    const { matches, start, help } = await this.#actions.complete(value.slice(0, end));
    if (this.text !== value) return;
    if (!matches.length) {
      this.#hint.textContent = help || "Nothing to complete here.";
      this.#hint.hidden = false;
      this.#hint.scrollIntoView({ block: "nearest" });
      return;
    }
    const common = matches.reduce((a, b) => {
      let same = 0;
      while (same < a.length && a[same] === b[same]) same++;
      return a.slice(0, same);
    });
    if (matches.length === 1 || common.length > end - start) this.#replace(start, end, common);
    if (matches.length > 1) this.#openList(matches, start);
  }

  #openList(matches, start) {
    const shown = matches.slice(0, MOST_SHOWN);
    this.#choice = { matches: shown, start, index: 0 };
    const items = shown.map((match, index) => {
      const item = document.createElement("li");
      item.id = `completion-${index}`;
      item.role = "option";
      item.dataset.index = index;
      item.textContent = match;
      return item;
    });
    if (matches.length > shown.length) {
      const more = document.createElement("li");
      more.role = "presentation";
      more.textContent = `⋯ ${(matches.length - shown.length).toLocaleString("en")} more: type on`;
      items.push(more);
    }
    this.#list.replaceChildren(...items);
    this.#list.hidden = false;
    this.#select(0);
    this.#list.scrollIntoView({ block: "nearest" });
  }

  #select(index) {
    this.#choice.index = index;
    for (const item of this.#list.children) item.ariaSelected = String(Number(item.dataset.index) === index);
    this.#list.children[index].scrollIntoView({ block: "nearest" });
    this.#area.setAttribute("aria-activedescendant", `completion-${index}`);
  }

  #accept(index) {
    const { matches, start } = this.#choice;
    this.#replace(start, this.#area.selectionStart, matches[index]);
    this.#closeList();
  }

  #closeList() {
    this.#choice = null;
    this.#list.hidden = this.#hint.hidden = true;
    this.#area.removeAttribute("aria-activedescendant");
  }

  #replace(start, end, text) {
    this.#area.setRangeText(text, start, end, "end");
    this.#changed();
  }

  #changed() {
    this.#closeList();
    this.#resizeSoon();
  }

  /** Once a frame, for it lays the page out: lines that were typed ahead are taken out faster than that. */
  #resizeSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#resize();
    });
  }

  #resize() {
    const lines = this.text.split("\n").length;
    const first = this.#mark.dataset.first ?? ">>>";
    this.#mark.textContent = [first, ...Array(lines - 1).fill("...")].join("\n");
    this.#area.style.height = "auto";
    this.#area.style.height = `${this.#area.scrollHeight}px`;
  }
}
