/** The page of the grid laboratory: Python in a worker (boot.js), the idea in laboratory.py, the volume in volume.js. */

import heatMap from "../../web/views/heat_map.js";
import { Model, show as draw } from "../../web/views/model.js";
import { between, colours, make, numbers, percent, short } from "../../web/views/parts.js";
import rankLines from "../../web/views/rank_lines.js";
import { explain, give, note, started, stopped, tabs } from "../support.js";
import { ADVICE } from "./advice.js";
import plane from "./plane.js";
import volume from "./volume.js";

const PYTHON = ["tasks.py", "laboratory.py"];
const FOLDER = "/grid";
const STAGES = { runtime: "Loading Python…", packages: "Loading packages…", ready: "Almost there…" };
const VIEWS = { volume, tensor: heatMap, says: plane, train: rankLines, compare: rankLines, evolve: rankLines };
const MOST_BITS = 64;
const CLOSE = 1e-7; // what float32 tells of a cosine

const element = (id) => document.getElementById(id);
const models = Object.fromEntries(Object.keys(VIEWS).map((name) => [name, new Model({ data: null })]));

let python = null;
let choices = null; // what laboratory.choices returned
let plan = null; // what the network is made of
let look = null; // numbers of its cells
let open = null; // the place of the open cell
let tensors = []; // of the open cell
let curves = {}; // name -> [value], of what runs
let running = null; // the name of the plot that what runs draws
let coloured = null; // by what cells were coloured before targets were compared

/** `state` is one of starting, missing, ready, busy and crashed. */
function show(state, text) {
  document.body.dataset.state = state;
  element("status").textContent = text;
  for (const button of document.querySelectorAll("main button:not([role=tab], #stop, .volume button), main select[name=preset]")) button.disabled = state !== "ready";
  element("stop").disabled = state !== "busy" || running === null;
}

async function start() {
  try {
    const sources = await Promise.all(PYTHON.map(async (name) => (await fetch(new URL(name, import.meta.url))).text()));
    [element("tasks").textContent, element("laboratory").textContent] = sources;
    python = await started(show, STAGES, {
      onStdout: (text) => console.log(text),
      onStderr: (text) => console.warn(text),
      onEvent: (name, value) => receive[name](value),
      onCrash: (error) => crashed(error),
    });
    if (!python) return;
    await Promise.all(PYTHON.map((name, k) => python.writeFile(`${FOLDER}/${name}`, sources[k])));
    await python.run(`import sys; sys.path.append("${FOLDER}"); from laboratory import laboratory`);
    choices = await python.run("laboratory.choices()");
    offer();
    await build();
  } catch (error) {
    crashed(error);
  }
}

/** The worker is gone, or never came: everything but the page itself has to begin anew. */
function crashed(error) {
  python?.terminate();
  python = null;
  stopped(error, "It may have run out of memory. Start it again; the network begins anew.", start);
  show("crashed", "Python has stopped.");
}

/** Fill the fields with what there is to choose. */
function offer() {
  const options = (select, names, told = (name) => name) => select.replaceChildren(...names.map((name) => make("option", { value: name }, told(name))));
  options(element("preset"), Object.keys(choices.networks));
  options(element("network-form").elements.task, choices.tasks);
  options(element("precision-form").elements.dtype, Object.keys(choices.dtypes), (name) => `${name} · ${choices.dtypes[name]} ${choices.dtypes[name] === 1 ? "bit" : "bits"}`);
  element("precision-form").elements.dtype.value = "int4";
  preset();
}

function preset() {
  const spec = choices.networks[element("preset").value];
  // Feedback brings something from the second pass on.
  element("network-form").elements.passes.value = spec.links ? 2 : 1;
  element("spec").value = written(spec);
}

/** A specification with a line for each layer. */
function written(spec) {
  const lines = (items) => `[\n${items.map((item) => `    ${JSON.stringify(item)}`).join(",\n")}\n  ]`;
  return `{\n${Object.entries(spec).map(([name, value]) => `  ${JSON.stringify(name)}: ${Array.isArray(value) && value.length ? lines(value) : JSON.stringify(value)}`).join(",\n")}\n}`;
}

/** Do something that asks Python, while the page says so; what fails is explained. `plot` is what its curves go to. */
async function during(text, job, plot = null) {
  if (!["ready", "starting"].includes(document.body.dataset.state)) return;
  element("notes").replaceChildren();
  running = plot;
  if (plot) curves = {};
  const focused = document.activeElement;
  show("busy", text);
  const worker = python;
  try {
    await job();
    running = null;
    show("ready", "Done.");
  } catch (error) {
    running = null;
    if (worker !== python || !python) return; // the crash was told
    explain(error, ADVICE);
    show("ready", "That did not work.");
  }
  paint();
  if (focused?.isConnected && document.activeElement === document.body) focused.focus();
}

function build() {
  const { task, seed, passes } = element("network-form").elements;
  const inputs = { spec: element("spec").value, task: task.value, seed: seed.valueAsNumber, passes: passes.valueAsNumber };
  return during("Building…", async () => {
    const found = await python.run("await laboratory.build(spec, task, seed, passes)", inputs);
    for (const name of ["train", "compare", "evolve"]) models[name].set("data", null);
    element("precisions").hidden = element("compared").hidden = true;
    element("precisions").tBodies[0].replaceChildren();
    element("evolve-text").textContent = "";
    await took(found);
  });
}

/** Show a network that Python told of; the open cell stays open where it is still there. */
async function took(found) {
  plan = found;
  if (open && !plan.layers.some((layer) => String(place(layer)) === String(open))) open = null;
  looked(found.look);
  await inspect();
}

const place = ({ z, y, x, l }) => [z, y, x, l];

function looked(found) {
  look = found;
  const kind = element("colour");
  if (coloured && running !== "compare" && !Object.values(look.cells).some(({ budget }) => Number.isFinite(budget))) {
    if (kind.value === "budget") kind.value = coloured; // budgets are gone
    coloured = null;
  }
  element("loss").textContent = short(look.loss);
  element("accuracy").textContent = percent(look.accuracy);
  element("parameters").textContent = plan.total_parameters.toLocaleString("en");
  element("bytes").textContent = `${look.bytes.toLocaleString("en")} bytes`;
  paint();
}

/** How strong a cell's colour is by its value, from 0 to 1, and what stands at both ends of the scale. */
function scale(kind, values) {
  const there = values.filter((value) => value !== null && Number.isFinite(value));
  if (kind === "dtype") return { share: (bits) => Math.log2(2 * bits) / Math.log2(2 * MOST_BITS), least: "1 bit", most: `${MOST_BITS} bits` };
  if (kind === "budget") {
    if (!there.length) return { share: () => 0, least: "", most: "there are none before targets are compared with gradients" };
    // A cosine: most layers agree with their targets so closely that what is missing to 1 tells them apart.
    const missing = (value) => Math.max(1 - value, CLOSE);
    const [least, most] = [Math.min(...there), Math.max(...there)];
    const range = Math.log(missing(least) / missing(most)) || 1;
    return { share: (value) => 1 - (0.92 * Math.log(missing(value) / missing(most))) / range, least: budgetText(least), most: `${budgetText(most)} (logarithmic)` };
  }
  const most = Math.max(...there, 0);
  if (kind === "activation" || !(most > 0)) return { share: (value) => (most ? value / most : 0), least: "0", most: short(most) };
  // Gradients differ by powers of ten.
  const least = Math.min(...there.filter((value) => value > 0));
  const range = Math.log(most / least) || 1;
  return { share: (value) => (value > 0 ? 0.08 + (0.92 * Math.log(value / least)) / range : 0), least: short(least), most: `${short(most)} (logarithmic)` };
}

const budgetText = (value) => value.toFixed(6);

/** Colour the cells, in the volume and in the list. */
function paint() {
  if (!plan) return;
  const kind = element("colour").value;
  const value = (layer) => {
    if (kind === "dtype") return layer.parameters ? choices.dtypes[layer.dtype] : null;
    return look.cells[String(place(layer))]?.[kind] ?? null;
  };
  const { share, least, most } = scale(kind, plan.layers.map(value));
  element("least").textContent = least;
  element("most").textContent = most;
  const [cold, heat] = colours(document.body, "--cold", "--heat");
  const cells = plan.layers.map((layer) => {
    const [at, own] = [place(layer), value(layer)];
    const part = own === null ? 0 : Math.min(1, Math.max(0, share(own)));
    const colour = cold.map((from, k) => Math.round(from + (heat[k] - from) * part));
    const said = own === null ? "–" : kind === "dtype" ? `${layer.dtype}, ${own} bits` : kind === "budget" ? budgetText(own) : short(own);
    return { place: at, label: layer.type, colour, off: layer.disabled, told: `${at} · ${layer.type} · ${layer.disabled ? "off" : `${kind} ${said}`}`, said, css: between(cold, heat, part) };
  });
  const links = plan.links.map(({ source, target }) => ({ source, target, back: !before(source, target) }));
  models.volume.set("data", { size: plan.size, cells, links });
  list(cells);
}

/** Whether a layer runs before another. */
function before(one, other) {
  const k = one.findIndex((value, n) => value !== other[n]);
  return k >= 0 && one[k] < other[k];
}

/** The cells as buttons, for keyboards, readers and narrow screens; made anew only when others are there. */
function list(cells) {
  const names = cells.map(({ place: at, label }) => `${at} ${label}`).join();
  const box = element("cells");
  element("cells-hint").textContent = cells.length ? "Cells in the order in which they run:" : "";
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.replaceChildren(
      ...cells.map(({ place: at, label }) => {
        const button = make("button", { type: "button", "data-place": String(at) }, make("code", {}, String(at)), ` ${label} `, make("span", { class: "quiet numbers" }));
        button.addEventListener("click", () => choose(at));
        return make("li", {}, button);
      }),
    );
  }
  [...box.querySelectorAll("button")].forEach((button, k) => {
    button.style.setProperty("--colour", cells[k].css);
    button.classList.toggle("off", cells[k].off);
    button.lastChild.textContent = cells[k].said;
    button.setAttribute("aria-pressed", String(String(cells[k].place) === String(open)));
    button.disabled = document.body.dataset.state !== "ready";
  });
}

function choose(at) {
  return during("Looking into the cell…", async () => {
    open = at;
    await inspect();
  });
}

/** Show the open cell, or the whole network: tensors, and what a readout there says of the plane. */
async function inspect() {
  const layer = open && plan.layers.find((one) => String(place(one)) === String(open));
  models.volume.set("selected", open);
  element("panel-cell").hidden = element("switch").hidden = element("whole").hidden = !open;
  element("panel-title").textContent = open ? `Cell ${open} · ${layer.type}` : "The whole network";
  element("panel-text").textContent = open ? told(layer) : wholeText();
  element("switch").textContent = layer?.disabled ? "Switch it on" : "Switch it off";
  element("says-title").textContent = open ? "What it would say of the plane" : "What it says of the plane";
  element("says-text").textContent = "";
  models.says.set("data", null);
  if (open) {
    ({ tensors } = await python.run("await laboratory.cell(place)", { place: open }));
    const chosen = element("tensor").value;
    element("tensor").replaceChildren(...tensors.map(({ name }) => make("option", { value: name }, name)));
    if (tensors.some(({ name }) => name === chosen)) element("tensor").value = chosen;
    tensor();
  }
  if (layer?.disabled) {
    element("says-text").textContent = "It is switched off.";
    return;
  }
  const says = await python.run("await laboratory.readout(place)", { place: open ?? [] });
  models.says.set("data", { ...says, side: choices.side, name: element("panel-title").textContent });
  element("says-text").textContent = open
    ? `A linear readout here is right for ${percent(says.accuracy)} of the examples. If the cell gave its mean to all, the loss would be ${short(says.silent)} instead of ${short(look.loss)}.`
    : `Right for ${percent(says.accuracy)} of the examples.`;
}

function wholeText() {
  const { length } = plan.layers;
  if (!length) return "It has no cells: what goes in comes out.";
  return `${length} ${length === 1 ? "layer" : "layers"} in a volume of ${plan.size.slice(0, 3).join(" × ")}. Choose one to open it.`;
}

function told(layer) {
  const parts = [
    layer.activation && layer.activation !== "linear" ? layer.activation : "",
    `${layer.parameters.toLocaleString("en")} parameters`,
    layer.parameters ? layer.dtype : "",
    layer.input_shape ? `${layer.input_shape.slice(1).join(" × ")} → ${layer.output_shape.slice(1).join(" × ")}` : "",
    layer.combine_mode ? `branches: ${layer.branches.map(({ type }) => type).join(", ")}; ${layer.combine_mode}` : "",
    layer.layers ? `inside: ${layer.layers.map(({ type }) => type).join(", ")}` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Show the chosen tensor of the open cell. */
function tensor() {
  const found = tensors.find(({ name }) => name === element("tensor").value);
  if (!found) return;
  const whole = found.rows * found.columns === found.shape.reduce((a, b) => a * b, 1);
  element("tensor-text").textContent = `${found.shape.join(" × ")} ${found.dtype} in ${found.bytes.toLocaleString("en")} bytes · mean ${short(found.mean)} · deviation ${short(found.deviation)} · from ${short(found.least)} to ${short(found.most)}${whole ? "" : ` · the first ${found.rows} × ${found.columns}`}`;
  const labels = (count) => Array.from({ length: count }, (_, k) => String(k));
  // A heat map begins at the bottom, a matrix with its first row on top.
  const values = numbers(found.values).map((_, k, all) => all[(found.rows - 1 - Math.floor(k / found.columns)) * found.columns + (k % found.columns)]);
  models.tensor.set("data", { name: found.name, rows: labels(found.rows).reverse(), columns: labels(found.columns), values });
}

const AXES = { train: ["step", 4], compare: ["step", 1], evolve: ["generation", 1] };

const receive = {
  look(found) {
    if (found.plan) plan = found.plan;
    looked(found);
  },
  curve(point) {
    for (const [name, value] of Object.entries(point)) (curves[name] ??= []).push(value);
    const series = Object.entries(curves).map(([name, values]) => ({ name, values: [...values] }));
    const [axis, each] = AXES[running];
    const count = series[0].values.length;
    show("busy", `${axis} ${count * each}: loss ${short(Object.values(point).at(-1))}`);
    models[running].set("data", { points: series[0].values.map((_, k) => String(k)), series, measure: "loss", axis, each });
  },
};

function row(table, [first, ...rest]) {
  table.tBodies[0].append(make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((cell) => make("td", {}, cell))));
  table.hidden = false;
}

const work = {
  network: () => build(),
  train({ steps, rate }) {
    const inputs = { steps: Number(steps), rate: Number(rate) };
    return during("Training…", async () => took(await python.run("await laboratory.train(steps, rate)", inputs)), "train");
  },
  precision({ dtype, place: which }) {
    const one = which === "chosen";
    if (one && !open) return note({ title: "No cell is open", text: "Choose one in the volume first." });
    return during("Packing…", async () => {
      const found = await python.run("await laboratory.morph(dtype, place)", { dtype, place: one ? open : [] });
      const cells = [found.look.bytes.toLocaleString("en"), short(found.look.loss), percent(found.look.accuracy)];
      row(element("precisions"), [one ? `${dtype} in ${open}` : dtype, ...cells]);
      await took(found);
    });
  },
  compare({ steps, rate }) {
    const kind = element("colour");
    if (kind.value !== "budget") [coloured, kind.value] = [kind.value, "budget"];
    return during("Comparing…", async () => {
      const found = await python.run("await laboratory.compare(steps, rate)", { steps: Number(steps), rate: Number(rate) });
      element("compared").tBodies[0].replaceChildren();
      for (const [name, { loss, accuracy }] of Object.entries(found)) {
        const keep = make("button", { type: "button", "aria-label": `Go on with the copy that learned by ${name}` }, "Go on");
        keep.addEventListener("click", () => during("Taking it…", async () => took(await python.run("await laboratory.keep(name)", { name }))));
        row(element("compared"), [name, short(loss), percent(accuracy), keep]);
      }
      await took(await python.run("await laboratory.told()"));
    }, "compare");
  },
  evolve({ size, generations, structure }) {
    const inputs = { size: Number(size), generations: Number(generations), structure: structure === "on", seed: element("network-form").elements.seed.valueAsNumber };
    return during("Evolving…", async () => {
      const found = await python.run("await laboratory.evolve(size, generations, structure, seed)", inputs);
      element("evolve-text").textContent = found.summary;
      await took(found);
    }, "evolve");
  },
};

for (const [name, view] of Object.entries(VIEWS)) draw(view, element(`${name}-view`), models[name]);
for (const [name, does] of Object.entries(work)) {
  element(`${name}-form`).addEventListener("submit", (event) => {
    event.preventDefault();
    does(Object.fromEntries(new FormData(event.target)));
  });
}
// Views draw to the width that they have, which is none while they are hidden.
tabs(() => Object.values(models).forEach((model) => model.get("data") && model.set("data", { ...model.get("data") })));
models.volume.on("change:selected", () => {
  const at = models.volume.get("selected");
  if (at && String(at) !== String(open)) choose(at);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
element("preset").addEventListener("change", preset);
element("colour").addEventListener("change", paint);
element("tensor").addEventListener("change", tensor);
element("stop").addEventListener("click", () => {
  element("status").textContent = "Stopping…";
  python.run("laboratory.stop()");
});
element("whole").addEventListener("click", () => choose(null));
element("switch").addEventListener("click", () => {
  const on = plan.layers.find((one) => String(place(one)) === String(open)).disabled;
  during("Switching…", async () => took(await python.run("await laboratory.enable(place, on)", { place: open, on })));
});
element("save").addEventListener("click", () => {
  during("Saving…", async () => give("network.json", await python.run("await laboratory.save()"), "application/json"));
});
element("choose").addEventListener("click", () => element("file").click());
element("file").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  target.value = ""; // so that the same file can be chosen again
  if (!file) return;
  element("spec").value = await file.text();
  await build();
});
start();
