/** The page of the logit lens: Python in a worker (support.js), the idea in demo.py, the drawing in web/views. */

import { keepForOffline } from "../../web/offline.js";
import { Explore } from "./explore.js";
import { Models } from "./models.js";
import { absolute, bytes, explain, give, lastName, note, started, stopped } from "../support.js";
import { adviceOn, isLoss } from "./advice.js";
import { experiment, plansOf, remember, tellSum } from "./link.js";
import { drawLensScale, LensView } from "../../web/views/lens_grid.js";
import { make } from "../../web/views/parts.js";

const MODEL = new URL("../../weights/SmolLM2-135M-Instruct.Q4_1.gguf", import.meta.url);
const ON_HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"; // offered where the site has no weights
const SILENCE = 4000; // milliseconds without a byte after which the page says that it waits
const PYTHON = ["helpers.py", "instruments.py", "features.py", "comparison.py", "branching.py", "files.py", "programs.py", "notebook.py", "estimate.py", "sums.py", "demo.py"];
const LATER = ["tokenizers.mjs", "jinja.mjs", "d3.js", "plot.js"]; // loaded where they are needed, with a network or without
const FOLDER = "/logit_lens";
const PROMPT_KEY = "pellucid.lens.prompt"; // a reload keeps what was typed
const STAGES = { runtime: "Loading Python…", packages: "Loading packages…", ready: "Almost there…" };

const element = (id) => document.getElementById(id);
const view = new LensView({ table: element("grid"), panel: element("panel"), scroller: element("scroller"), visible: element("visible") });
const shade = () => drawLensScale(element("lens-scale"));
shade();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", shade);

let python = null;
let model = null; // what demo.load returned, with its name
let run = null; // the generation that is shown, as it is saved
let begun = null; // the one that is under way, until there is something of it to show
let held = []; // its columns until then
let stopping = false;
let model_at = ""; // the address that the model came from, for the link
let [replay, plans] = [[], []]; // ids that a link's text goes on with, and what they are read under: [first position, JSON] each
let silence = 0; // the timer of a load whose bytes do not come
let come = ""; // what has come of it

/** `state` is one of starting, missing, empty (no model), loading, ready, generating and crashed. */
function show(state, text) {
  document.body.dataset.state = state;
  element("status").textContent = text;
  element("load").disabled = element("choose").disabled = element("estimate").disabled = state !== "empty";
  element("generate").disabled = state !== "ready";
  element("stop").disabled = state !== "generating";
  element("change").disabled = state !== "ready";
  element("models").hidden = element("model-form").hidden = state === "loading" || (model !== null && state !== "empty");
  element("loading").hidden = state !== "loading";
  if (state !== "empty") element("takes").hidden = true;
  element("loaded").hidden = model === null || state === "loading" || state === "empty";
  element("keep").hidden = model === null || state !== "empty";
  if (state !== "loading") clearTimeout(silence);
  element("save").disabled = state !== "ready" || run === null;
}

async function start() {
  try {
    // They come while Python starts.
    const texts = Promise.all(PYTHON.map(async (name) => (await fetch(new URL(name, import.meta.url))).text()));
    texts.catch(() => {}); // told where they are awaited
    python = await started(show, STAGES, {
      onStdout: (text) => console.log(text),
      onStderr: (text) => console.warn(text),
      onEvent: (name, value) => receive[name](value),
      onCrash: (error) => crashed(error),
    });
    const sources = await texts;
    element("python").replaceChildren(...sources.map((text, k) => make("pre", {}, make("code", {}, text))));
    [...element("python").children].forEach((pre, k) => (pre.tabIndex = 0, pre.setAttribute("aria-label", PYTHON[k])));
    if (!python) return;
    await Promise.all(PYTHON.map((name, k) => python.writeFile(`${FOLDER}/${name}`, sources[k])));
    await python.run(`import sys; sys.path.append("${FOLDER}"); from demo import demo; from estimate import estimate`);
    show("empty", "Ready to load a model.");
    showCopies("await demo.copies()");
    if (wanted.has("model")) load(element("source").value, lastName(element("source").value));
  } catch (error) {
    crashed(error);
  }
}

/** The worker is gone, or never came: everything but the page itself has to begin anew. */
function crashed(error) {
  python?.terminate();
  python = model = null;
  stopped(error, "It may have run out of memory. Start it again; the model must then be loaded again too.", start);
  show("crashed", "Python has stopped.");
}

function duration(seconds) {
  return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}

/** Say so when a load's bytes do not come: soon where there is no network. */
function listen() {
  clearTimeout(silence);
  const why = navigator.onLine ? "the server is silent; it is asked again by itself" : "offline; it goes on by itself";
  silence = setTimeout(() => (element("progress-text").textContent = `${come} · ${why}`), navigator.onLine ? SILENCE : SILENCE / 8);
}

const receive = {
  progress({ done, total, rate, remaining }) {
    if (document.body.dataset.state === "generating") element("status").textContent = `Loading the other model: ${bytes(done)} of ${bytes(total)}`;
    element("progress").value = total ? done / total : 1;
    const so_far = `${bytes(done)} of ${bytes(total)}`;
    if (so_far === come) return; // it is told ten times a second, whether bytes come or not
    come = so_far;
    element("progress-text").textContent = come + (Number.isFinite(remaining) ? ` · ${bytes(rate)}/s · ${duration(remaining)} left` : "");
    clearTimeout(silence);
    if (done < total) listen();
  },
  prompt({ tokens }) {
    begun.prompt_tokens = tokens;
    show("generating", `Reading the ${tokens.length} tokens of the prompt…`);
  },
  reading({ done, total }) {
    if (!stopping) show("generating", `Reading the prompt: ${done} of ${total} tokens…`);
  },
  token(made) {
    const { id, token, text } = made;
    if (begun) {
      present();
      show("generating", "Generating…");
    }
    if (made.parent !== explore.at) retrace(explore.path(made.parent)); // another version of a token that was read
    explore.token(made);
    view.read([{ id, token }]);
    element("text").querySelector(".made").append(text);
  },
  column(column) {
    if (begun) return held.push(column);
    explore.column(column);
    view.add(column);
  },
  part(part) {
    explore.part(part);
    const { of, rows, points } = part.data;
    if (!stopping) show("generating", `Looking: ${(rows ?? points).length} of ${of} layers…`);
  },
};

const explore = new Explore({
  run: (code, inputs) => python.run(code, inputs),
  busy(text) {
    stopping = false;
    element("notes").replaceChildren();
    show("generating", text);
  },
  done: (text) => show("ready", text),
  failed: (error) => failed(error),
  about: () => ({ prompt: run.prompt, model: model.name, source: absolute(model_at) || model.name }),
  isReady: () => document.body.dataset.state === "ready",
  path(nodes, text) {
    retrace(nodes);
    element("text").querySelector(".made").textContent = text;
  },
  save: give,
});

new Models({
  run: (code, inputs) => python.run(code, inputs),
  load: (source, name) => load(source, name),
  isFree: () => document.body.dataset.state === "empty",
  failed: (error) => {
    element("notes").replaceChildren();
    explain(error, adviceOn(error));
  },
});

/** Show the lens of tokens that were read before. */
function retrace(nodes) {
  view.reset(model.layers, run.prompt_tokens.length - 1);
  view.read(nodes);
  for (const { column } of nodes) if (column) view.add(column);
}

async function load(source, name) {
  element("notes").replaceChildren();
  element("progress").removeAttribute("value");
  element("progress-text").textContent = "Reading the header…";
  show("loading", `Loading ${name}…`);
  come = "";
  element("cancel").focus();
  const [worker, before] = [python, model];
  try {
    const loaded = await python.run("await demo.load(source, keep)", { source, keep: element("keep-copy").checked });
    model = { name, ...loaded };
    model_at = typeof source === "string" ? source : "";
    explore.map(loaded.map);
  } catch (error) {
    if (worker !== python || !python) return; // the crash was told
    const wasCancelled = error.type === "LoadCancelled";
    if (!wasCancelled) explain(error, adviceOn(error));
    model = before && (await python.run("demo.model is not None")) ? before : null;
    if (model === null) await python.run("demo.forget()");
    const rest = model ? ` ${model.name} is still here.` : "";
    show("empty", (wasCancelled ? "Cancelled. Nothing of it is kept." : "The model was not loaded.") + rest);
    return element("load").focus();
  }
  const parts = [`${model.layers} layers`, bytes(model.bytes), `reads up to ${model.positions} tokens`, model.device];
  element("summary").replaceChildren(make("strong", {}, name), make("span", { class: "quiet" }, ` ${parts.filter(Boolean).join(" · ")}`));
  const chat = document.querySelector('input[value="chat"]');
  chat.disabled = !model.chat;
  if (chat.disabled && chat.checked) document.querySelector('input[value="plain"]').checked = true;
  showCopies("await demo.copies()").then(async () => wanted.get("model") === model_at && tellSum(wanted, await python.run("from sums import sum_of; await sum_of(demo.model)")));
  remember(replay.length ? { model: model_at } : { model: model_at, ids: "" });
  keepForOffline([...python.info.loaded, ...LATER.map((name) => new URL(`../../npm/${name}`, import.meta.url).href)]).then((isKept) => (document.body.dataset.offline = isKept));
  for (const { elements: { layer } } of [element("steering-form"), element("features-form")])
    (layer.max = model.layers - 1), (layer.value = Math.min(layer.value, layer.max));
  show("ready", "Ready. Give it a prompt.");
  element("prompt").focus();
  if (replay.length) generate();
}

/** List the files that are kept in this browser. */
async function showCopies(code, inputs = {}) {
  const found = await python.run(code, inputs).catch(() => []); // a browser without such storage keeps none
  element("copies").hidden = !found.length;
  element("copies-list").replaceChildren(
    ...found.map(({ url, size, sha256, kept }) => {
      const use = make("button", { type: "button" }, "Load");
      const remove = make("button", { type: "button" }, "Remove");
      use.setAttribute("aria-label", `Load ${lastName(url)}`);
      remove.setAttribute("aria-label", `Remove ${lastName(url)}`);
      use.addEventListener("click", () => ["empty", "ready"].includes(document.body.dataset.state) && load(url, lastName(url)));
      remove.addEventListener("click", async () => {
        await showCopies("await demo.remove(url)", { url });
        (element("copies-list").querySelector("button:last-of-type") ?? element("prompt")).focus();
      });
      const about = make("span", { class: "quiet numbers" }, ` ${bytes(size)} · since ${new Date(kept).toLocaleDateString()} `);
      about.title = `${url}\nsha256 of its pieces: ${sha256}`;
      return make("li", {}, lastName(url), about, use, " ", remove);
    }),
  );
}

/** Show the generation that is under way instead of the one before, which stays where this one fails at once. */
function present() {
  run = begun;
  begun = null;
  element("text").hidden = element("lens").hidden = element("explore").hidden = false;
  explore.reset(run.prompt_tokens);
  element("text").querySelector(".given").textContent = run.chat ? `${run.prompt}\n` : run.prompt;
  element("text").querySelector(".made").textContent = "";
  view.reset(model.layers, run.prompt_tokens.length - 1);
  view.read(run.prompt_tokens);
  held.splice(0).forEach(receive.column);
}

async function generate() {
  const prompt = element("prompt").value;
  const chat = document.querySelector('input[name="mode"]:checked').value === "chat";
  element("notes").replaceChildren();
  begun = { model: model.name, prompt, chat, prompt_tokens: [] };
  [held, stopping] = [[], false];
  const wasAtButton = document.activeElement === element("generate");
  show("generating", "Reading the prompt…");
  if (wasAtButton) element("stop").focus();
  const worker = python;
  try {
    const done = await python.run("await demo.generate(prompt, chat, count)", { prompt, chat, count: replay.length ? 1 : element("count").valueAsNumber });
    if (begun && done.reason === "stopped") {
      begun = null;
      return finished("Stopped before the prompt was read.");
    }
    if (begun) present(); // no token was made
    if (replay.length) await follow(replay.splice(0));
    element("text").querySelector(".made").append(done.text);
    const reasons = { stopped: "Stopped", end: "The model came to an end", length: "Done" };
    const rate = Number((done.tokens / done.seconds).toPrecision(2));
    finished(`${reasons[done.reason]}: ${done.tokens} tokens with their lens in ${done.seconds.toFixed(1)} s, ${rate} a second.`);
  } catch (error) {
    if (worker === python && python) failed(error); // else the crash was told
  }
}

/** What was asked for did not work; the model is still there, unless its device is gone. */
function failed(error) {
  explain(error, adviceOn(error));
  if (isLoss(error)) return lost();
  finished("That did not work.");
}

/** Go on from the prompt with the tokens of a link, under its plans. */
async function follow(tokens) {
  explore.at = Math.min(run.prompt_tokens.length, plans[0]?.[0] ?? Infinity) - 1;
  element("text").querySelector(".made").textContent = "";
  retrace(explore.path());
  await python.run("await demo.follow(tokens, plans)", { tokens, plans: plans.splice(0) });
}

/** The device is gone, with the model: what was read comes back once that is loaded again. */
async function lost() {
  if (run) {
    [replay, plans] = [explore.ids().slice(run.prompt_tokens.length), []];
    element("prompt").value = run.prompt;
  }
  model = null;
  await python.run("demo.reset()");
  show("empty", "The model is gone; load it again, and its text comes back, without changes that were made to it.");
}

/** The model is ready; whoever was at Stop is at Generate. */
function finished(text) {
  const isAtStop = [element("stop"), document.body].includes(document.activeElement);
  show("ready", text);
  if (isAtStop) element("generate").focus();
}

function save() {
  const path = explore.path();
  const made = path.slice(run.prompt_tokens.length).map(({ id, token }, k) => ({ id, token, best: path[run.prompt_tokens.length + k - 1].best }));
  const text = element("text").querySelector(".made").textContent;
  give("logit_lens.json", JSON.stringify({ ...run, new_tokens: made, text, columns: view.columns }, null, 1), "application/json");
}

element("model-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const source = element("source").value.trim();
  if (source) load(source, lastName(source));
});
element("choose").addEventListener("click", () => element("file").click());
element("file").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  target.value = ""; // so that the same file can be chosen again
  if (file) load(file, file.name);
});
element("cancel").addEventListener("click", () => {
  show("loading", "Cancelling…");
  python.run("demo.cancel()");
});
element("change").addEventListener("click", () => {
  show("empty", `${model.name} stays until another is loaded.`);
  element("source").focus();
});
element("release").addEventListener("click", async () => {
  model = null;
  remember({ model: "", ids: "" });
  await python.run("demo.forget()");
  show("empty", "Ready to load a model.");
  element("source").focus();
});
element("keep").addEventListener("click", () => {
  show("ready", "Ready. Give it a prompt.");
  element("prompt").focus();
});
for (const change of ["online", "offline"]) addEventListener(change, () => document.body.dataset.state === "loading" && come && listen());
document.addEventListener("dragover", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault(); // else the browser opens the file itself
  event.dataTransfer.dropEffect = element("choose").disabled && document.body.dataset.state !== "ready" ? "none" : "copy";
});
document.addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  if (!["empty", "ready"].includes(document.body.dataset.state)) return;
  element("notes").replaceChildren();
  if (event.dataTransfer.items[0].webkitGetAsEntry()?.isDirectory) note({ title: "A folder cannot be read here", text: "Drop one GGUF file, or give the address of the folder on a site or a hub." });
  else load(file, file.name);
});
element("prompt-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (document.body.dataset.state === "ready") generate();
});
element("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  element("prompt-form").requestSubmit(element("generate").disabled ? null : element("generate"));
});
element("stop").addEventListener("click", () => {
  show("generating", "Stopping…");
  stopping = true;
  python.run("demo.stop()");
});
element("save").addEventListener("click", save);
element("share").addEventListener("click", async () => {
  if (document.body.dataset.state !== "ready") return;
  if (!model_at) return finished("A file of this computer has no address that others could open.");
  show("generating", "Making the link…");
  const worker = python;
  const inBar = "The link stands in the address bar.";
  try {
    const { tokens, plans, hash } = await python.run("await demo.experiment()");
    const said = { model: model_at, hash, prompt: run.prompt, mode: run.chat ? "chat" : "plain", ids: tokens.join("."), view: explore.tab };
    history.replaceState(null, "", await experiment(said, plans));
  } catch (error) {
    return worker === python && python && failed(error); // else the crash was told
  }
  finished(inBar);
  if (!navigator.clipboard) return;
  // A browser may take its time to copy, or ask first: meanwhile the page goes on.
  const copied = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
  if (copied && element("status").textContent === inBar) element("status").textContent = "The link is copied. It opens this model, prompt and branch.";
});

const wanted = new URLSearchParams(location.search);
element("source").value = wanted.get("model") ?? MODEL.pathname;
if (!wanted.has("model")) {
  const typed = element("source").value;
  const answer = await fetch(MODEL, { method: "HEAD" }).catch(() => null);
  if (!answer?.ok && element("source").value === typed) element("source").value = ON_HUB;
}
if (wanted.get("mode") === "chat") document.querySelector('input[value="chat"]').checked = true;
if (wanted.has("ids") && wanted.has("model")) replay = wanted.get("ids").split(".").map(Number).filter(Number.isInteger);
if (replay.length) plans = await plansOf(location).catch(() => []); // a link that was cut has none
if (wanted.has("view")) explore.open(wanted.get("view"));
element("prompt").value = wanted.get("prompt") ?? sessionStorage.getItem(PROMPT_KEY) ?? element("prompt").value;
element("prompt").addEventListener("input", () => {
  sessionStorage.setItem(PROMPT_KEY, element("prompt").value);
  remember({ prompt: "", ids: "" });
  [replay, plans] = [[], []]; // those were of another text
});
start();
