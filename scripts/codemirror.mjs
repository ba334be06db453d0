// What the REPL's editor uses of CodeMirror 6; bundle.py makes one module of it.
export {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionStatus,
  moveCompletionSelection,
  startCompletion,
} from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentLess, insertNewlineAndIndent } from "@codemirror/commands";
export { python, pythonLanguage } from "@codemirror/lang-python";
export { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { Compartment, EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, placeholder, showTooltip } from "@codemirror/view";
export { classHighlighter, highlightCode } from "@lezer/highlight";
