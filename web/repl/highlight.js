/** Python's colours: one set of classes (`tok-keyword`, ...) for what is being typed and for what was. */

import { classHighlighter, highlightCode, pythonLanguage } from "../../npm/codemirror.mjs";

const LONGEST = 20_000; // characters of an input that are parsed again to be shown
const MARK = ">>> ".length;

/** The nodes that show an input with its prompts, or null where it has none. */
export function highlighted(text) {
  if (!text.startsWith(">>> ") || text.length > LONGEST) return null;
  const lines = text.split("\n");
  const nodes = [];
  let line = 0;
  const mark = () => nodes.push(span("tok-mark", lines[line++].slice(0, MARK)));
  const code = lines.map((each) => each.slice(MARK)).join("\n");
  mark();
  const emit = (piece, classes) => nodes.push(classes ? span(classes, piece) : document.createTextNode(piece));
  const end = () => {
    nodes.push(document.createTextNode("\n"));
    mark();
  };
  highlightCode(code, pythonLanguage.parser.parse(code), classHighlighter, emit, end);
  return nodes;
}

function span(classes, text) {
  const element = document.createElement("span");
  element.className = classes;
  element.textContent = text;
  return element;
}
