/** The page of the examples: one program of examples/ at a time, its story and fields read from its text. */

import {
  EditorState,
  EditorView,
  bracketMatching,
  classHighlighter,
  defaultKeymap,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  keymap,
  lineNumbers,
  python as pythonMode,
  syntaxHighlighting,
} from "../../npm/codemirror.mjs";
import { TrainingPlots } from "../../web/training_plot.js";
import { make } from "../../web/views/parts.js";
import { explain, started, stopped } from "../support.js";
import { ADVICE } from "./advice.js";

const PROGRAMS = new URL("../../examples/", import.meta.url);
const FOLDER = "/examples";
const DATA = ["digits.npz"];
const STAGES = { runtime: "Loading Python…", packages: "Loading packages…", ready: "Almost there…" };
const STORY = /^"""(.+)\n\n([^]*?)"""/;
const FIELDS = /^def main\(([^)]*)\)/m;

const element = (id) => document.getElementById(id);
const plots = new TrainingPlots(element("curve"));
const programs = new Map(); // name -> its text
let python = null;
let name = null; // of the example that is open
let editor = null;
let head = ""; // what stands before the editor's text

/** `state` is one of starting, missing, ready, busy and crashed. */
function show(state, text) {
  document.body.dataset.state = state;
  element("status").textContent = text;
  element("form").querySelector(".primary").disabled = state !== "ready";
  element("stop").disabled = state !== "busy";
}

async function text(file) {
  const answer = await fetch(new URL(file, PROGRAMS));
  if (!answer.ok) throw new Error(`${answer.url}: ${answer.status} ${answer.statusText}`);
  return answer.text();
}

/** Fetch the programs, and open the one that the address names. */
async function list() {
  const names = JSON.parse(await text("list.json"));
  const texts = await Promise.all(names.map((one) => text(`${one}.py`)));
  names.forEach((one, k) => programs.set(one, texts[k]));
  element("list").replaceChildren(
    ...names.map((one) => make("li", {}, make("a", { href: `#${one}` }, STORY.exec(programs.get(one))[1]))),
  );
  addEventListener("hashchange", open);
  open();
}

function open() {
  const asked = location.hash.slice(1);
  const next = programs.has(asked) ? asked : programs.keys().next().value;
  if (next === name) return;
  if (document.body.dataset.state === "busy") stop();
  name = next;
  const program = programs.get(name);
  const [, title, story] = STORY.exec(program);
  element("title").textContent = title;
  document.title = `${title} · Pellucid`;
  element("story").replaceChildren(...story.trim().split("\n\n").map((part) => make("p", {}, part.replaceAll("\n", " "))));
  for (const link of element("list").querySelectorAll("a")) {
    link.toggleAttribute("aria-current", link.hash === `#${name}`);
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
  }
  element("fields").replaceChildren(
    ...FIELDS.exec(program)[1].split(",").filter((part) => part.includes("=")).map((part) => {
      const [field, value] = part.split("=").map((piece) => piece.trim());
      return make("label", {}, `${field} `, make("input", { name: field, type: "number", min: "0", step: "any", value, required: "" }));
    }),
  );
  edit();
  clear();
}

/** Put the example's code into the editor; what its docstring says stands above already. */
function edit() {
  const program = programs.get(name);
  const [docstring] = STORY.exec(program);
  head = docstring;
  editor?.destroy();
  editor = new EditorView({
    parent: element("code"),
    doc: program.slice(docstring.length).replace(/^\n+/, (blank) => ((head += blank), "")),
    extensions: [
      lineNumbers({ formatNumber: (line) => String(line + head.split("\n").length - 1) }), // as tracebacks count
      pythonMode(),
      syntaxHighlighting(classHighlighter),
      bracketMatching(),
      indentOnInput(),
      indentUnit.of("    "),
      EditorState.tabSize.of(4),
      history(),
      keymap.of([{ key: "Mod-Enter", run: () => (element("form").requestSubmit(), true) }, ...historyKeymap, ...defaultKeymap]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "The program, in Python" }),
    ],
  });
  editor.scrollDOM.tabIndex = 0; // what scrolls can be reached by keys
}

/** Forget what a run has drawn. */
function clear() {
  plots.clear();
  element("pictures").replaceChildren();
  element("printed").textContent = "";
  element("printed").hidden = true;
  element("notes").replaceChildren();
  element("before").hidden = false;
}

const receive = {
  loss(entry) {
    plots.add(entry);
    show("busy", `Step ${entry.step}: loss ${entry.loss.toPrecision(4)}`);
  },
  // An image, so that nothing in a picture is run. One that comes again under its title takes its own place.
  picture({ title, svg }) {
    const shown = [...element("pictures").children].find((image) => image.alt === title) ?? make("img", { alt: title });
    shown.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
    element("pictures").append(shown);
  },
};

function print(said) {
  element("printed").hidden = false;
  element("printed").append(said);
}

async function start() {
  try {
    python = await started(show, STAGES, {
      onStdout: print,
      onStderr: print,
      onEvent: (event, value) => receive[event](value),
      onCrash: crashed,
    });
    if (!python) return;
    const data = DATA.map(async (file) => python.writeFile(`${FOLDER}/${file}`, new Uint8Array(await (await fetch(new URL(file, PROGRAMS))).arrayBuffer())));
    const running = await (await fetch(new URL("running.py", import.meta.url))).text();
    await Promise.all([...data, python.writeFile(`${FOLDER}/pictures.py`, await text("pictures.py")), python.writeFile(`${FOLDER}/running.py`, running)]);
    await python.run(`import sys; sys.path.append("${FOLDER}"); import running`);
    show("ready", "Ready.");
  } catch (error) {
    crashed(error);
  }
}

/** The worker is gone, or never came. */
function crashed(error) {
  python?.terminate();
  python = null;
  stopped(error, "It may have run out of memory. Start it again.", start);
  show("crashed", "Python has stopped.");
}

async function run() {
  clear();
  element("before").hidden = true;
  show("busy", "Preparing…");
  const worker = python;
  const given = Object.fromEntries([...element("fields").querySelectorAll("input")].map((input) => [input.name, input.valueAsNumber]));
  try {
    const ended = await python.run("await running.run(name, program, given)", { name, program: head + editor.state.doc.toString(), given });
    show("ready", ended ? "Done." : "Stopped.");
  } catch (error) {
    if (worker !== python || !python) return; // the crash was told
    if (error.type === "KeyboardInterrupt") return show("ready", "Stopped.");
    explain(error, ADVICE);
    show("ready", "That did not work.");
  }
}

/** End a run after its step; a program that does not come to one is interrupted, where the page can. */
function stop() {
  const worker = python;
  show("busy", "Stopping…");
  worker.run("running.stop()").catch(() => {}); // the crash is told elsewhere
  setTimeout(() => worker === python && element("status").textContent === "Stopping…" && worker.interrupt(), 3000);
}

element("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (document.body.dataset.state === "ready") run();
});
element("stop").addEventListener("click", stop);
element("restore").addEventListener("click", () => edit());
show("starting", "Starting…");
await list();
await start();
