/**
 * The input being typed: CodeMirror with Python's colours, brackets and indentation, with history and with completion by the
 * session that runs.
 *
 *   new Editor(parent, { enter(whole), complete(before), describe(expression), signature(before), shown() })
 *
 * `enter` is told `whole` when the text must not be continued. `complete` gives a promise of { matches, begun, owner, help }:
 * names that may follow what is begun of one, and the expression that they belong to; or help where no name begins. `describe`
 * and `signature` give promises of text. `shown` is called when something below the input has to be seen.
 */

import {
  Compartment,
  EditorState,
  EditorView,
  Prec,
  StateEffect,
  StateField,
  autocompletion,
  bracketMatching,
  classHighlighter,
  closeBrackets,
  closeBracketsKeymap,
  completionStatus,
  defaultKeymap,
  history,
  historyKeymap,
  indentLess,
  indentOnInput,
  indentUnit,
  insertNewlineAndIndent,
  keymap,
  lineNumbers,
  moveCompletionSelection,
  placeholder,
  python,
  showTooltip,
  startCompletion,
  syntaxHighlighting,
} from "../../npm/codemirror.mjs";
import { History } from "./history.js";

const INDENT = "    ";
const OPEN = /[([{,]\s*$/; // what stands before the cursor where brackets want more lines
const CLOSING = /^\s*[)\]}]/;
const PAUSE = 150; // milliseconds without a key after which the signature is looked up

const setHint = StateEffect.define(); // { text, pos } or null

/** Text below the cursor: the signature and docs of the call that is open. It goes with the cursor's leaving. */
const hintField = StateField.define({
  create: () => null,
  update(hint, transaction) {
    for (const effect of transaction.effects) if (effect.is(setHint)) return effect.value;
    if (hint === null || !transaction.docChanged) return transaction.selection ? null : hint;
    const pos = transaction.changes.mapPos(hint.pos, 1);
    return hint.stays ? { ...hint, pos } : null;
  },
  provide: (field) =>
    showTooltip.from(field, (hint) => hint && { pos: hint.pos, create: () => ({ dom: hintElement(hint.text) }) }),
});

function hintElement(text) {
  const element = document.createElement("pre");
  element.id = "hint";
  element.role = "note";
  element.ariaLive = "polite";
  element.textContent = text;
  return element;
}

export class Editor {
  #view;
  #actions;
  #history = new History();
  #last = { before: null, found: null }; // what was completed last
  #timer = 0; // of the signature
  #suggested = "";
  #enabled = new Compartment();
  #marks = new Compartment();
  #placeholder = new Compartment();

  constructor(parent, actions) {
    this.#actions = actions;
    const does = (command) => (view) => {
      command(view);
      return true;
    };
    const labels = {
      "aria-label": "Python input",
      "aria-describedby": "keys",
      autocapitalize: "off",
      autocorrect: "off",
      enterkeyhint: "send",
      id: "editor",
    };
    this.#view = new EditorView({
      parent,
      extensions: [
        autocompletion({
          activateOnTyping: false,
          interactionDelay: 0,
          icons: false,
          override: [(context) => this.#complete(context)],
          tooltipClass: () => "completions",
        }),
        Prec.highest(
          keymap.of([
            { key: "Enter", run: does((view) => this.#enter(view)) },
            { key: "Mod-Enter", run: does(() => this.#actions.enter(true)) },
            { key: "Shift-Enter", run: insertNewlineAndIndent },
            { key: "Alt-Enter", run: insertNewlineAndIndent },
            { key: "Tab", run: does((view) => this.#tab(view)), shift: (view) => this.#previous(view) || indentLess(view) },
            { key: "ArrowUp", run: () => this.#recall(-1) },
            { key: "ArrowDown", run: () => this.#recall(1) },
            { key: "Escape", run: () => this.#hide() },
          ]),
        ),
        python(),
        syntaxHighlighting(classHighlighter),
        bracketMatching(),
        closeBrackets(),
        indentOnInput(),
        indentUnit.of(INDENT),
        EditorState.tabSize.of(INDENT.length),
        history(),
        keymap.of([...closeBracketsKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.lineWrapping,
        EditorView.clipboardInputFilter.of(withoutPrompts),
        EditorView.contentAttributes.of(labels),
        EditorView.updateListener.of((update) => this.#updated(update)),
        hintField,
        this.#placeholder.of([]),
        this.#marks.of(marks(">>>")),
        this.#enabled.of(enabled(false)),
      ],
    });
  }

  get text() {
    return this.#view.state.doc.toString();
  }

  set text(value) {
    const changes = { from: 0, to: this.#view.state.doc.length, insert: value };
    this.#view.dispatch({ changes, selection: { anchor: value.length }, effects: setHint.of(null) });
  }

  set enabled(value) {
    this.#view.dispatch({ effects: this.#enabled.reconfigure(enabled(value)) });
  }

  /** The marks before the lines: `first`, then dots; or the prompt of `input`. */
  set prompt(first) {
    this.#view.dispatch({ effects: this.#marks.reconfigure(marks(first)) });
  }

  /** What an empty input suggests; Tab takes it. */
  set placeholder(text) {
    this.#suggested = text;
    this.#view.dispatch({ effects: this.#placeholder.reconfigure(text ? placeholder(text) : []) });
  }

  /** Whether a part of the text is selected. */
  get hasSelection() {
    return this.#view.hasFocus && !this.#view.state.selection.main.empty;
  }

  /** Do what a key does, for whoever has no such key. */
  press(key) {
    this.focus();
    if (key === "Tab") this.#tab(this.#view);
    else if (key === "Enter") insertNewlineAndIndent(this.#view);
    else this.#recall(key === "ArrowUp" ? -1 : 1, true);
  }

  focus() {
    this.#view.focus();
  }

  remember(text) {
    this.#history.add(text);
  }

  /** Put text at a position; a cursor at it or behind it moves along. */
  insert(position, text) {
    const { head } = this.#view.state.selection.main;
    const selection = head >= position ? { anchor: head + text.length } : undefined;
    this.#view.dispatch({ changes: { from: position, insert: text }, selection });
  }

  /** Within brackets that were just opened or where a comma stands, a line begins; else the input is entered. */
  #enter(view) {
    const { state } = view;
    const { head } = state.selection.main;
    if (OPEN.test(state.sliceDoc(0, head)) && CLOSING.test(state.sliceDoc(head))) insertNewlineAndIndent(view);
    else this.#actions.enter(false);
  }

  #previous(view) {
    return completionStatus(view.state) === "active" && moveCompletionSelection(false)(view);
  }

  /** History, where the cursor cannot move further in the text itself, or anyway. */
  #recall(step, anyway = false) {
    const { doc, selection } = this.#view.state;
    const { head, empty } = selection.main;
    const line = doc.lineAt(head).number;
    if (!anyway && (!empty || line !== (step < 0 ? 1 : doc.lines))) return false;
    const entry = this.#history.move(step, this.text);
    if (entry !== null) this.text = entry;
    return entry !== null;
  }

  async #tab(view) {
    if (completionStatus(view.state) === "active") {
      moveCompletionSelection(true)(view);
      return;
    }
    const { state } = view;
    const { head } = state.selection.main;
    if (!state.doc.length && this.#suggested) {
      this.text = this.#suggested;
      return;
    }
    const typed = state.sliceDoc(state.doc.lineAt(head).from, head);
    if (!typed.trim()) {
      view.dispatch(state.replaceSelection(INDENT.slice(typed.length % INDENT.length)));
      return;
    }
    const before = state.sliceDoc(0, head);
    const found = await this.#found(before);
    if (view.state.doc !== state.doc) return; // the answer came too late
    const { matches, begun } = found;
    if (!matches.length) {
      this.#hint(found.help || "Nothing to complete here.", !found.help);
      return;
    }
    const common = matches.reduce(beginning);
    if (matches.length === 1 || common.length > begun.length) {
      const from = head - begun.length;
      const selection = { anchor: from + common.length };
      view.dispatch({ changes: { from, to: head, insert: common }, selection, userEvent: "input.complete" });
      this.#last = { before: before.slice(0, from) + common, found: { ...found, begun: common } };
    }
    if (matches.length > 1) startCompletion(view);
    else this.#signatureSoon();
  }

  /** What may follow; asked once for a text. */
  async #found(before) {
    if (this.#last.before !== before) this.#last = { before, found: await this.#actions.complete(before) };
    return this.#last.found;
  }

  async #complete(context) {
    const { matches, begun, owner } = await this.#found(context.state.sliceDoc(0, context.pos));
    if (!matches.length) return null;
    const options = matches.map((label) => ({
      label,
      type: label.endsWith("(") ? "function" : "variable",
      info: () => this.#info(owner + label.replace(/\($/, "")),
      apply: (view, _, from, to) => {
        const selection = { anchor: from + label.length };
        view.dispatch({ changes: { from, to, insert: label }, selection, userEvent: "input.complete" });
        this.#signatureSoon();
      },
    }));
    this.#actions.shown();
    return { from: context.pos - begun.length, options, validFor: /^\w*$/ };
  }

  async #info(expression) {
    const text = await this.#actions.describe(expression);
    if (!text) return null;
    const element = document.createElement("pre");
    element.textContent = text;
    return element;
  }

  #hint(text, isBrief = false) {
    const { head } = this.#view.state.selection.main;
    this.#view.dispatch({ effects: setHint.of(text ? { text, pos: head, stays: !isBrief } : null) });
    if (text) this.#actions.shown();
  }

  #hide() {
    const isShown = this.#view.state.field(hintField) !== null;
    if (isShown) this.#view.dispatch({ effects: setHint.of(null) });
    return isShown;
  }

  #updated(update) {
    if (!update.docChanged) return;
    const isTyped = update.transactions.some((each) => each.isUserEvent("input") || each.isUserEvent("delete"));
    const { head } = update.state.selection.main;
    const isOpened = update.state.sliceDoc(Math.max(0, head - 1), head) === "(";
    if (isTyped && (isOpened || update.state.field(hintField))) this.#signatureSoon();
  }

  /** Show the signature of the call that is open, when no more is typed for a moment. */
  #signatureSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const { state } = this.#view;
      const text = await this.#actions.signature(state.sliceDoc(0, state.selection.main.head));
      const isOpen = completionStatus(this.#view.state) === "active";
      if (this.#view.state.doc === state.doc && !isOpen) this.#hint(text);
    }, PAUSE);
  }
}

function enabled(value) {
  return [EditorView.editable.of(value), EditorView.contentAttributes.of({ "aria-disabled": String(!value) })];
}

function marks(first) {
  return lineNumbers({ formatNumber: (number) => (number === 1 ? first : "...") });
}

/** What two texts begin with. */
function beginning(one, other) {
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  return one.slice(0, same);
}

/** An example with prompts and outputs, without them; other text as it is. */
function withoutPrompts(text) {
  const plain = text.replaceAll("\r\n", "\n");
  if (!/^\s*>>>( |$)/m.test(plain.split("\n").find((line) => line.trim()) ?? "")) return plain;
  const typed = plain.split("\n").map((line) => line.trimStart()).filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
  return typed.map((line) => line.slice(4)).join("\n");
}
