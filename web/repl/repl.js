/** The REPL page: Python in a worker (boot.js), Pyodide's console in it (pellucid_repl.py), an editor and a transcript. */

import { boot } from "../boot.js";
import { Editor } from "./editor.js";
import { keepForOffline } from "../offline.js";
import { EXAMPLES } from "./examples.js";
import { Transcript } from "./transcript.js";
import { missing } from "../webgpu_advice.js";

const FILES = ["pellucid_repl.py", "pellucid_completion.py"];
const IN_LINK = "#code=";
const COPIED = 64_000_000; // bytes of a dropped file up to which it also lies in Python's file system
const SLOW_STOP = 3000; // milliseconds after which an interrupt counts as unheard

const CAUSES = [
  [/out of memory|cannot enlarge|array buffer allocation/i, "The page ran out of memory: Python has at most 4 GB here. Load a smaller model, or del what is not needed."],
  [/call stack|stack overflow/i, "Calls were nested more deeply than the browser allows."],
  [/out of bounds|unreachable|null function|signature mismatch/i, "Something read or wrote memory that is not Python's, which nothing survives."],
  [/could not be loaded|answered|lock file|failed to fetch|import/i, "Python could not be loaded. Look at the connection and the server, then try again."],
];

const element = (id) => document.getElementById(id);
const main = document.querySelector("main");
const transcript = new Transcript(element("transcript"), main);
const editor = new Editor(document.querySelector(".prompt"), { enter, complete, describe, signature, shown });

let python = null;
let state = "starting"; // then "ready", "running", "asking" (Python waits in input()) or "stopped"
let ahead = 0; // how many characters of the editor's text were entered while Python was busy
let unheard = 0; // the timer of the last interrupt
let columns = 0; // how many characters Python knows to fit in a line
let inputs = []; // of this session
let asked = ""; // the prompt of input()

function show(next, text) {
  transcript.draw(); // a state is shown together with what led to it
  state = next;
  element("status").textContent = text;
  element("interrupt").disabled = state !== "running" && state !== "asking";
  element("restart").disabled = state === "starting";
  document.body.classList.toggle("busy", state === "running");
  document.body.dataset.state = state;
  if (state === "ready" || state === "stopped") clearTimeout(unheard);
}

function note(...paragraphs) {
  const box = document.createElement("div");
  box.className = "note";
  for (const content of paragraphs) {
    const paragraph = document.createElement("p");
    paragraph.append(...[content].flat());
    box.append(paragraph);
  }
  element("notes").append(box);
}

function code(text) {
  const shown = document.createElement("code");
  shown.textContent = text;
  return shown;
}

async function start() {
  element("notes").replaceChildren();
  element("crash").hidden = true;
  show("starting", "Starting Python…");
  const stages = { runtime: "Loading Python…", packages: "Loading packages…", ready: "Almost there…" };
  const sources = FILES.map((name) => fetch(new URL(name, import.meta.url)));
  const without = missing();
  try {
    const folder = new URLSearchParams(location.search).get("packages");
    const more = folder && new URL(folder.replace(/\/*$/, "/"), location.href).href;
    if (more) note(["More packages come from ", code(more), "."]);
    const booted = await boot({
      more,
      onProgress: ({ stage }) => show("starting", stages[stage]),
      onStdout: (text) => transcript.print("stdout", text),
      onStderr: (text) => transcript.print("stderr", text),
      onEvent: receive,
      onCrash: (error) => stopped(error.message),
    });
    for (const [index, file] of (await Promise.all(sources)).entries()) {
      if (!file.ok) throw new Error(`${file.url} answered ${file.status}.`);
      await booted.writeFile(`/pellucid_repl/${FILES[index]}`, await file.text());
    }
    await booted.run('__import__("sys").path.append("/pellucid_repl")');
    python = booted;
    const versions = await call("versions");
    columns = 0;
    inputs = [];
    await tellColumns();
    transcript.block("quiet", `Pellucid ${versions.pellucid} on Python ${versions.python}, in this page`);
  } catch (error) {
    return stopped(error.message);
  }
  const reason = await without;
  if (reason) {
    const how = ["Everything works on the CPU, slower: first enter ", code("import torch; torch.set_default_device(\"cpu\")"), "."];
    note(`${reason} Tensors cannot live on the GPU here.`, how);
  }
  if (!python.info.jspi) {
    const how = ["await the twins instead: ", code("await x.item_async()"), ", ", code("print(await x.numpy_async())"), "."];
    note("This browser cannot suspend Python (no JSPI), so values that must be waited for cannot be read in passing;", how);
  }
  if (python.interruptNote) note(python.interruptNote);
  editor.enabled = true;
  editor.prompt = ">>>";
  show("ready", "Ready.");
  editor.focus();
}

/**
 * Call a method of the console. Arguments are written into the code, as JSON is Python for texts; so that nothing but what
 * is typed appears among the names of the session.
 */
function call(method, ...texts) {
  return python.run(`await __import__("pellucid_repl").console.${method}(${texts.map((text) => JSON.stringify(text))})`);
}

/** Let what is printed fit the window: on a phone rows of a matrix are shorter. */
async function tellColumns() {
  const probe = element("columns");
  const fitting = Math.floor(main.clientWidth / (probe.getBoundingClientRect().width / probe.textContent.length)) - 4;
  if (fitting === columns) return;
  columns = fitting;
  await call("fit", String(fitting));
}

/** Python is gone: say why, and offer a new one. */
function stopped(reason) {
  python = null;
  editor.enabled = false;
  transcript.print("stderr", `${reason}\n`);
  show("stopped", "Python has stopped.");
  element("crash-reason").textContent = cause(reason);
  element("repeat").hidden = element("crash-kept").hidden = !inputs.length;
  element("crash").hidden = false;
  element("begin-anew").focus();
  element("crash").scrollIntoView({ block: "nearest" });
}

/** A sentence on what ended Python. */
function cause(reason) {
  const known = CAUSES.find(([pattern]) => pattern.test(reason));
  return known ? known[1] : "Python has stopped, by an error that it could not handle.";
}

function receive(name, value) {
  if (name === "accepted") {
    inputs.push(value);
    const lines = value.split("\n").map((line, index) => `${index ? "..." : ">>>"} ${line}`);
    transcript.block("input", lines.join("\n"));
    editor.remember(value);
    take(value.length);
    editor.placeholder = ""; // the hint is for the first line
  } else if (name === "picture") {
    transcript.picture(value);
  } else if (name === "input") {
    show("asking", "Python asks for a line.");
    editor.prompt = asked = value;
  } else if (name === "answered") {
    show("running", "Running…");
    editor.prompt = ">>>";
  }
}

async function enter(whole) {
  if (state === "asking") {
    const text = editor.text;
    transcript.block("input", asked + text);
    editor.text = "";
    await call("answer", text);
  } else if (state === "running") {
    editor.insert(editor.text.length, "\n");
    ahead = editor.text.length;
  } else if (state === "ready") {
    await run(editor.text.length, whole);
    await catchUp();
  }
}

/** Run the first `length` characters of the editor's text; false when they are no whole input yet. */
async function run(length, whole = false) {
  const text = editor.text.slice(0, length);
  if (!text.trim()) {
    take(length);
    return true;
  }
  show("running", "Running…");
  const running = python;
  let more = null;
  try {
    await tellColumns();
    more = await call(whole ? "run_whole" : "submit", text);
  } catch (error) {
    if (running !== python) return true; // it was restarted meanwhile
    transcript.print("stderr", `${error.message}\n`);
  }
  if (running !== python) return true;
  show("ready", "Ready.");
  transcript.scrollToEnd();
  if (more !== null && editor.text[length] !== "\n") {
    const newline = "\n" + (editor.text.length > length ? "" : more);
    editor.insert(length, newline);
    if (ahead) ahead += newline.length;
  }
  return more === null;
}

/** Take an input out of the editor, with the newline that entered it while Python was busy. */
function take(length) {
  const entered = editor.text[length] === "\n" && length < ahead ? 1 : 0;
  editor.text = editor.text.slice(length + entered);
  ahead = Math.max(0, ahead - length - entered);
}

/** Run what was entered while Python was busy, line by line as in a terminal. */
async function catchUp() {
  let from = 0;
  while (state === "ready") {
    const end = editor.text.indexOf("\n", from);
    if (end < 0 || end >= ahead) break;
    from = (await run(end)) ? 0 : end + 1;
  }
  if (state === "ready") ahead = 0;
}

async function complete(before) {
  if (state !== "ready") return { matches: [], begun: "", owner: "", help: "Python is busy." };
  return call("completions", before);
}

async function describe(expression) {
  return state === "ready" ? call("describe", expression) : "";
}

async function signature(before) {
  return state === "ready" ? call("signature", before) : "";
}

/** Bring what opens below the input into view. */
function shown() {
  requestAnimationFrame(() => transcript.scrollToEnd());
}

function interrupt() {
  if (state === "ready") {
    if (editor.text) transcript.block("input", `>>> ${editor.text}\nKeyboardInterrupt`);
    editor.text = "";
    return;
  }
  if (state !== "running" && state !== "asking") return;
  ahead = 0;
  const sent = python.interrupt('__import__("pellucid_repl").console.cancel()');
  clearTimeout(unheard);
  if (sent) {
    const advice = "It ends when the current call returns. Or press Restart Python.";
    unheard = setTimeout(() => show(state, `Not stopped yet. ${advice}`), SLOW_STOP);
  } else {
    show(state, "Only waiting can be interrupted on this page. To end a computation, press Restart Python.");
  }
}

function restart() {
  const old = python;
  python = null;
  ahead = 0;
  old?.terminate();
  editor.enabled = false;
  transcript.block("quiet", "Python was restarted; all names are gone.");
  return start();
}

element("interrupt").addEventListener("click", () => {
  interrupt();
  editor.focus();
});

/** Put a program into the editor, to be read and run. */
function offer(program) {
  editor.text = program;
  editor.focus();
  transcript.scrollToEnd();
}

/** A link to what stands in the editor, or else to all that was typed. */
async function share() {
  const link = new URL(IN_LINK + encodeURIComponent(editor.text || inputs.join("\n")), location.href).href;
  history.replaceState(null, "", link);
  const isCopied = await navigator.clipboard.writeText(link).then(() => true, () => false);
  element("status").textContent = isCopied ? "The link is copied." : "The link is in the address bar.";
}

/** Let Python have a file: as `dropped`, a source of weights, and by its name where it is not large. */
async function takeFile(file) {
  const small = file.size <= COPIED;
  if (small) await python.writeFile(`/home/pyodide/${file.name}`, new Uint8Array(await file.arrayBuffer()));
  await python.run("dropped = _dropped; del _dropped", { _dropped: file });
  const where = small ? `; also open(${JSON.stringify(file.name)})` : "";
  const text = `dropped = ${file.name} (${file.size.toLocaleString("en")} bytes), for from_pretrained(dropped) or weights.open(dropped)${where}`;
  transcript.block("quiet", text);
}

for (const [index, { name }] of EXAMPLES.entries()) element("examples").append(new Option(name, index));
element("examples").addEventListener("change", ({ target }) => {
  offer(EXAMPLES[target.value].code);
  target.value = "";
});
element("share").addEventListener("click", share);
document.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault(); // else the browser opens the file itself
});
document.addEventListener("drop", async (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  if (python === null) return;
  for (const file of [...event.dataTransfer.files]) await takeFile(file);
});
element("begin-anew").addEventListener("click", restart);
element("repeat").addEventListener("click", async () => {
  const typed = inputs.join("\n");
  await restart();
  if (state === "ready") offer(typed);
});
element("restart").addEventListener("click", () => {
  if (inputs.length && state !== "stopped") element("sure").showModal();
  else restart();
});
element("sure").addEventListener("close", ({ target }) => {
  if (target.returnValue === "restart") restart();
  target.returnValue = "";
  editor.focus();
});
for (const button of document.querySelectorAll(".touch button")) {
  button.addEventListener("click", () => editor.press(button.dataset.key));
}
element("clear").addEventListener("click", () => {
  transcript.clear();
  editor.focus();
});
document.addEventListener("keydown", (event) => {
  if (!event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const selected = !getSelection().isCollapsed || editor.hasSelection;
  if (event.key === "c" && !selected) {
    event.preventDefault();
    interrupt();
  } else if (event.key === "l") {
    event.preventDefault();
    transcript.clear();
  }
});
main.addEventListener("click", (event) => {
  if (getSelection().isCollapsed && !event.target.closest("a, button, .note")) editor.focus();
});
editor.placeholder = "import pellucid as torch";
await start();
if (python) keepForOffline(python.info.loaded).then((isKept) => (document.body.dataset.offline = isKept));
if (location.hash.startsWith(IN_LINK)) {
  note("The program comes from the link. Read it, then press Enter at its end or Ctrl+Enter.");
  offer(decodeURIComponent(location.hash.slice(IN_LINK.length)));
}
