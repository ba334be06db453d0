/** The page of phase space: a form, a cloud that moves while it is computed, and how far its energies drift. */

import { make } from "../../web/views/parts.js";
import { explain, started, stopped } from "../support.js";
import { ADVICE } from "./advice.js";
import { Drift, Portrait } from "./portrait.js";

const FOLDER = "/phase_space";
const STAGES = { runtime: "Loading Python…", packages: "Loading packages…", ready: "Almost there…" };

const element = (id) => document.getElementById(id);
const form = element("form");
const portrait = new Portrait(element("portrait"));
const drift = new Drift(element("drift"));
let python = null;
let systems = [];

/** `state` is one of starting, missing, ready, busy and crashed. */
function show(state, text) {
  document.body.dataset.state = state;
  element("status").textContent = text;
  form.querySelector(".primary").disabled = state !== "ready";
  element("stop").disabled = state !== "busy";
}

const receive = {
  begin(plane) {
    portrait.begin(plane);
    drift.clear();
  },
  cloud({ t, x, y, drift: change }) {
    const seen = portrait.draw(x, y);
    drift.add(t, change);
    element("portrait").setAttribute("aria-label", `${seen} of ${x.length} systems at time ${t.toFixed(2)}`);
    show("busy", `Time ${t.toFixed(2)}: energies changed by ${change.toExponential(1)} at most.`);
  },
};

/** The chosen system's own step, and what there is to see. */
function choose() {
  const { dt, about } = systems.find(({ name }) => name === element("system").value);
  form.elements.dt.value = dt;
  element("about-system").textContent = about;
}

async function start() {
  try {
    python = await started(show, STAGES, {
      onEvent: (event, value) => receive[event](value),
      onCrash: crashed,
    });
    if (!python) return;
    const running = await (await fetch(new URL("running.py", import.meta.url))).text();
    await python.writeFile(`${FOLDER}/running.py`, running);
    const choices = await python.run(`import sys; sys.path.append("${FOLDER}"); import running; running.choices()`);
    systems = choices.systems;
    element("system").replaceChildren(...systems.map(({ name, title }) => make("option", { value: name }, title)));
    element("method").replaceChildren(...choices.methods.map((name) => make("option", { value: name }, name.replaceAll("_", " "))));
    element("method").value = "leapfrog";
    choose();
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
  element("notes").replaceChildren();
  show("busy", "Preparing…");
  const worker = python;
  const given = {
    system: element("system").value,
    method: element("method").value,
    ...Object.fromEntries([...form.querySelectorAll("input")].map((input) => [input.name, input.valueAsNumber])),
  };
  try {
    const ended = await python.run("await running.run(**given)", { given });
    show("ready", ended ? `Done. ${element("drift").getAttribute("aria-label")}.` : "Stopped.");
  } catch (error) {
    if (worker !== python || !python) return; // the crash was told
    explain(error, ADVICE);
    show("ready", "That did not work.");
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (document.body.dataset.state === "ready") run();
});
element("system").addEventListener("change", choose);
element("stop").addEventListener("click", () => {
  show("busy", "Stopping…");
  python.run("running.stop()").catch(() => {}); // the crash is told elsewhere
});
start();
