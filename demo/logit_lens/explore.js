/**
 * What can be done with a text once the model has read it: branch and step, attention, patching, attribution, ranks, steering,
 * features, comparison, the model's map. Pictures are drawn by the views of web/views of what the programs of programs.py compute.
 */

import attention from "../../web/views/attention.js";
import attribution from "../../web/views/attribution.js";
import branchTree from "../../web/views/branch_tree.js";
import features from "../../web/views/features.js";
import heatMap from "../../web/views/heat_map.js";
import lensGrid from "../../web/views/lens_grid.js";
import { Model, show } from "../../web/views/model.js";
import modelMap from "../../web/views/model_map.js";
import { make, percent, short, visible } from "../../web/views/parts.js";
import rankLines from "../../web/views/rank_lines.js";
import { absolute, lastName, tabs } from "../support.js";
import { programField, showList, showPair, written } from "./programs.js";

const VIEWS = { tree: branchTree, value: heatMap, attention, patching: heatMap, attribution, ranks: rankLines, features, comparison: lensGrid, map: modelMap };
const element = (id) => document.getElementById(id);
const PICTURES = ["attention", "patching", "attribution", "ranks", "features", "comparison"]; // that programs draw
// Other programs, by the panels that show them: what each shows of its data.
const TEXTS = {
  branches: ["tree", ({ texts }) => showList("branch-texts", texts)],
  steering: ["steering", (data) => showPair("steered", data)],
  feature: ["features", (data) => showPair("by-feature", data)],
};
const WIDE = 64; // columns of a drawn value at most

export class Explore {
  nodes = new Map(); // number -> { number, parent, id, token, best, column, changed }
  at = -1;
  #models = {};
  #coder = null; // what was opened: [file or address, features that stay]
  #other = null; // the model beside: its address or file
  #files = {}; // of this computer, by field
  #host;

  /**
   * @param host `isReady()`: whether nothing runs; `run(code, inputs)` asks Python; `busy(text)` and `done(text)` tell the page; `failed(error)` explains;
   *     `path(nodes)` shows the tokens up to one; `save(name, content, type)` gives a file to the person.
   */
  constructor(host) {
    this.#host = host;
    for (const [name, view] of Object.entries(VIEWS)) {
      this.#models[name] = new Model({ data: null });
      show(view, element(`${name}-view`), this.#models[name]);
    }
    this.#models.tree.on("change:selected", () => {
      const number = this.#models.tree.get("selected");
      if (number !== null) this.#returnTo(number);
    });
    // Views draw to the width that they have, which is none while they are hidden.
    tabs((panel) => {
      for (const [name, model] of Object.entries(this.#models)) {
        if (model.get("data") && panel.contains(element(`${name}-view`))) model.set("data", { ...model.get("data") });
      }
    });
    const form = (id, work) =>
      element(id).addEventListener("submit", (event) => {
        event.preventDefault();
        work(new FormData(event.target, event.submitter));
      });
    form("attention-form", () => this.#draw("attention", [this.ids()]));
    form("patching-form", (f) => this.#draw("patching", [f.get("clean"), f.get("corrupted"), f.get("point"), f.get("point") === "z" ? "head" : "position"]));
    form("attribution-form", async (f) => (await this.#asked()) && this.#draw("attribution", [this.ids(), this.#answer(f.get("token")), f.get("by")]));
    form("ranks-form", async (f) => (await this.#asked()) && this.#draw("ranks", [this.ids(), this.#best().slice(0, 3).map(([id]) => id), f.get("measure")]));
    form("step-form", (f) => this.#step(f.get("unit")));
    form("change-form", (f) => this.#ask("Changing the value…", "await demo.change(factor)", { factor: Number(f.get("factor")) }, (found) => this.#paused(found)));
    form("steering-form", (f) => this.#steer("steering", "demo.pictures.towards(positive, negative, layer, strength)", {
      positive: f.get("positive"), negative: f.get("negative"), layer: Number(f.get("layer")), strength: Number(f.get("strength")),
    }));
    form("features-form", (f) => this.#features(f));
    form("feature-form", (f) => {
      const [name, layer] = this.#models.features.get("data").point.split(".");
      const point = `${f.get("writes") || name}.${layer}`;
      this.#steer("feature", "demo.pictures.feature(point, feature, strength)", { point, feature: Number(f.get("feature")), strength: Number(f.get("strength")) });
    });
    this.#models.features.on("change:selected", () => this.#chosen(this.#models.features.get("selected")));
    form("comparison-form", (f) => this.#compare(f));
    this.#chooser("coder", element("coder-file"), element("choose-coder"), element("features-panel"));
    this.#chooser("other-model", element("other-file"), element("choose-other"), element("comparison-panel"));
    element("leave-other").addEventListener("click", () => this.#leave().then(() => element("other-model").focus()));
    element("notebook").addEventListener("click", () => this.#notebook());
    const again = (name) => (text) => this.#ask("Running…", "await demo.pictures.run(name, text)", { name, text }, (found) => this.#drawn(name, found));
    for (const name of PICTURES) programField(name, name, again(name));
    for (const [name, [panel]] of Object.entries(TEXTS)) programField(name, panel, again(name));
    const tree = element("branches-code");
    tree.hidden = false;
    // It is written when it is opened, for the tree grows without it.
    tree.addEventListener("toggle", () => tree.open && this.#ask("Writing…", "await demo.branches()", {}, (text) => written("branches", text)));
    element("strength").addEventListener("input", ({ target }) => (element("strength-value").textContent = short(target.valueAsNumber)));
    element("resume").addEventListener("click", () => this.#ask("Reading on…", "await demo.resume()", {}, (found) => this.#entered(found)));
    element("candidates").addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (!button) return;
      if (button.dataset.id) this.branch(Number(button.dataset.id));
      else this.#ask("Reading…", "await demo.entered()", {}, (found) => this.#entered(found));
    });
    element("explore").addEventListener("click", ({ target }) => {
      const button = target.closest("button[data-save]");
      if (button) this.#save(button.dataset.of, button.dataset.save);
    });
  }

  /** Begin anew with the tokens of a prompt. */
  reset(tokens) {
    this.nodes.clear();
    tokens.forEach(({ id, token }, number) => this.nodes.set(number, { number, parent: number - 1, id, token, best: null, column: null, changed: false }));
    this.at = tokens.length - 1;
    this.#unpause();
    for (const name of PICTURES) this.#models[name].set("data", null);
    this.#tree();
  }

  /** A new token; `best` are the candidates that it was chosen of, of the token before it. */
  token({ number, parent, id, token, best, changed }) {
    if (!this.nodes.has(number)) this.nodes.set(number, { number, parent, id, token, best: null, column: null, changed });
    const before = this.nodes.get(parent);
    if (before && best.length) before.best = best;
    this.at = number;
    this.#tree();
  }

  column(column) {
    const node = this.path()[column.position];
    if (!node) return;
    node.column = column;
    node.best ??= column.layers.at(-1);
    if (node.number === this.at) this.#choices();
  }

  /** Whether the tree already goes on with a token; then that is where the page stands. */
  next(id) {
    const found = [...this.nodes.values()].find((node) => node.parent === this.at && node.id === id);
    if (found) this.at = found.number;
    return Boolean(found);
  }

  /** The tokens up to the one that the session stands at, or another. */
  path(number = this.at) {
    const found = [];
    for (let node = this.nodes.get(number); node; node = this.nodes.get(node.parent)) found.unshift(node);
    return found;
  }

  ids() {
    return this.path().map(({ id }) => id);
  }

  map(data) {
    this.#coder = this.#other = null; // they went with the model before
    element("leave-other").hidden = true;
    element("feature-form").hidden = true;
    this.#models.map.set("data", data);
  }

  part({ name, data }) {
    this.#models[name].set("data", data);
  }

  /** What of the page is open, for its link. */
  get tab() {
    return document.querySelector('[role="tab"][aria-selected="true"]').id.replace(/-tab$/, "");
  }

  open(name) {
    element(`${name}-tab`)?.click();
  }

  /** Go on from the token that is stood at with another candidate. */
  branch(id) {
    const count = element("count").valueAsNumber || 1;
    const code = "await demo.branch(number, token, count)";
    return this.#ask("Going on…", code, { number: this.at, token: id, count }, (done) => this.#host.done(`${done.tokens} tokens in ${done.seconds.toFixed(1)} s.`));
  }

  #best() {
    return this.nodes.get(this.at)?.best ?? [];
  }

  /** Have the candidates behind the token that is stood at: the last one of a text was not read yet. */
  async #asked() {
    if (this.#best().length) return true;
    return (await this.#ask("Reading…", "await demo.entered()", {}, (found) => this.#entered(found))) !== null;
  }

  /** The token that is asked about: one that was written, or the likeliest. */
  #answer(text) {
    const wanted = text.trim();
    const found = this.#best().find(([, token]) => token.trim() === wanted) ?? [...this.nodes.values()].map(({ id, token }) => [id, token]).find(([, token]) => token.trim() === wanted);
    return (wanted && found ? found : this.#best()[0])[0];
  }

  async #ask(text, code, inputs, then) {
    if (!this.#host.isReady()) return null;
    const from = document.activeElement;
    this.#host.busy(text);
    try {
      const found = await this.#host.run(code, inputs);
      this.#host.done("Done.");
      then?.(found);
      return found;
    } catch (error) {
      this.#host.failed(error);
      return null;
    } finally {
      // Whoever stopped it is at a button that is disabled by now, whoever pressed one that is gone is nowhere.
      const now = document.activeElement;
      if ([document.body, element("stop")].includes(now) || !now.checkVisibility()) {
        const next = from.checkVisibility() ? from : element("candidates").querySelector("button");
        next?.focus({ preventScroll: true });
      }
    }
  }

  #draw(name, settings) {
    return this.#ask("Looking…", "await demo.pictures.draw(name, *settings)", { name, settings }, (found) => this.#drawn(name, found));
  }

  async #returnTo(number) {
    const text = await this.#ask("Returning…", "demo.go(number)", { number });
    if (text === null) return;
    this.at = number;
    this.#unpause();
    this.#tree();
    this.#host.path(this.path(), text);
  }

  #step(unit) {
    return this.#ask(`A step by a ${unit}…`, "await demo.step(unit)", { unit }, (found) => ("address" in found ? this.#paused(found) : this.#entered(found)));
  }

  #paused(found) {
    element("paused").hidden = false;
    const shape = found.shape.join(" × ");
    element("paused-at").textContent = `${found.address} (${found.place + 1} of ${found.places})`;
    element("paused-numbers").textContent = `shape ${shape} · mean ${short(found.mean)} · deviation ${short(found.deviation)} · from ${short(found.least)} to ${short(found.most)}`;
    element("paused-says").replaceChildren(...this.#chips(found.said));
    element("paused-said").hidden = !found.said.length;
    // As many as fit, of powers of two: states have lengths that these divide.
    const fit = 2 ** Math.floor(Math.log2(((element("paused").clientWidth || 1000) - 70) / 14));
    const columns = Math.max(1, Math.min(WIDE, fit, found.values.length));
    const count = Math.floor(found.values.length / columns);
    this.#models.value.set("data", {
      name: found.address,
      rows: Array.from({ length: count }, (_, k) => String(k * columns)),
      columns: Array.from({ length: columns }, (_, k) => String(k)),
      values: found.values.slice(0, count * columns),
    });
  }

  #entered({ best }) {
    this.#unpause();
    const node = this.nodes.get(this.at);
    node.best = best;
    this.#tree();
  }

  #unpause() {
    element("paused").hidden = true;
  }

  /** Go on from here twice: as the model does, and under the plan that Python makes of `plan`. */
  async #steer(name, plan, settings) {
    const [number, count, ids] = [this.at, element("count").valueAsNumber, this.ids()];
    const text = () => this.path().map(({ token }) => token).join("");
    if (!(await this.#ask("Going on without…", "await demo.branch(number, None, count)", { number, count }))) return;
    const plain = text();
    if (!(await this.#ask("Steering…", `await demo.steered(number, ${plan}, count)`, { ...settings, number, count }))) return;
    showPair({ steering: "steered", feature: "by-feature" }[name], { without: plain, steered: text() });
    const given = [ids, ...Object.values(settings), count];
    await this.#ask("Writing…", "demo.pictures.write(name, *given)", { name, given }, (program) => written(name, program));
  }

  /** Open the coder, if it is another one, and look at the text through it. */
  async #features(form) {
    const wanted = [this.#files.coder ?? form.get("source").trim(), Number(form.get("top_k"))];
    if (!this.#coder || wanted.some((value, k) => value !== this.#coder[k])) {
      this.#coder = null;
      if ((await this.#ask("Opening the coder…", "await demo.pictures.open(source, top_k, address)", { source: wanted[0], top_k: wanted[1], address: absolute(wanted[0].name ?? wanted[0]) })) === null) return;
      this.#coder = wanted;
    }
    const point = `${form.get("point")}.${form.get("layer")}`;
    await this.#draw("features", [this.ids(), point, Number(form.get("count"))]);
  }

  /** A feature was chosen: it can be steered by, as strongly as it is there. */
  #chosen(feature) {
    if (feature === null) return;
    const form = element("feature-form");
    form.hidden = false;
    form.elements.feature.value = feature.feature;
    form.elements.feature.max = this.#models.features.get("data").of - 1;
    form.elements.strength.value = short(feature.value);
  }

  /** Files of this computer instead of a field's address, chosen or dropped on its panel. */
  #chooser(id, input, button, panel) {
    const field = element(id);
    const take = (file) => {
      this.#files[id] = file;
      field.value = file.name;
    };
    field.addEventListener("input", () => delete this.#files[id]);
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      const [file] = input.files;
      input.value = ""; // so that the same file can be chosen again
      if (file) take(file);
    });
    panel.addEventListener("drop", (event) => {
      const [file] = event.dataTransfer.files;
      if (!file) return;
      event.preventDefault();
      event.stopPropagation(); // it is no model to be loaded instead
      take(file);
    });
  }

  /** The lens of this text beside that of another text, of another model, or both. */
  async #compare(form) {
    const wanted = this.#files["other-model"] ?? (form.get("model").trim() || null);
    if (wanted !== this.#other) {
      if (this.#other && !(await this.#leave())) return;
      if (wanted && (await this.#ask("Loading the other model…", "await demo.beside(source, address)", { source: wanted, address: absolute(wanted.name ?? wanted) })) === null) return;
      this.#other = wanted;
      element("leave-other").hidden = !wanted;
    }
    const text = form.get("prompt");
    await this.#ask("Looking…", "await demo.pictures.compare(ids, text)", { ids: this.ids(), text }, (found) => this.#drawn("comparison", found));
  }

  async #leave() {
    const done = await this.#ask("Letting go…", "demo.leave() or True", {});
    if (done === null) return false;
    this.#other = null;
    element("leave-other").hidden = true;
    return true;
  }

  /** A picture is there, with the program that computed it. */
  #drawn(name, { data, text }) {
    if (data.sides) {
      const { model, prompt } = this.#host.about();
      const other = this.#other && (this.#other.name ?? lastName(this.#other));
      const names = this.#other ? [model, other] : [prompt, element("other-prompt").value || prompt];
      data.sides.forEach((side, k) => (side.name = names[k]));
    }
    if (name in TEXTS) TEXTS[name][1](data);
    else this.#models[name].set("data", data);
    written(name, text);
    for (const button of document.querySelectorAll(`button[data-of="${name}"]`)) button.disabled = false;
  }

  async #notebook() {
    const { prompt, source } = this.#host.about();
    const content = await this.#ask("Writing…", "await demo.notebook(title, source)", { title: prompt, source });
    if (content !== null) this.#host.save("lens.ipynb", content, "application/x-ipynb+json");
  }

  #chips(best) {
    return best.map(([id, token, probability]) => {
      const button = make("button", { type: "button", dir: "auto", "data-id": String(id), style: `--p: ${probability.toFixed(4)}` }, make("code", {}, visible(token)), ` ${percent(probability)}`);
      return make("li", {}, button);
    });
  }

  #choices() {
    const chips = this.#chips(this.#best());
    // The last token of a text was not read yet.
    if (!chips.length) chips.push(make("li", {}, make("button", { type: "button" }, "Ask the model")));
    element("candidates").replaceChildren(...chips);
    element("stands-at").textContent = visible(this.nodes.get(this.at)?.token ?? "");
  }

  #tree() {
    const nodes = [...this.nodes.values()].map(({ number, parent, token, changed }) => ({ number, parent, token, changed }));
    this.#models.tree.set("data", { nodes, at: this.at });
    this.#choices();
  }

  async #save(name, kind) {
    if (kind === "png" || kind === "svg") return this.#picture(name, kind);
    const content = await this.#ask("Saving…", "demo.pictures.file(name, kind)", { name, kind });
    if (content !== null) this.#host.save(`${name}.${kind}`, content, kind === "csv" ? "text/csv" : "application/octet-stream");
  }

  async #picture(name, kind) {
    const view = element(`${name}-view`);
    if (kind === "svg") {
      const svg = [...view.querySelectorAll("svg")].at(-1).cloneNode(true); // behind those of the colours' names
      svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", view.querySelector('[role="img"]').getAttribute("aria-label"));
      return this.#host.save(`${name}.svg`, svg.outerHTML.replaceAll("var(--heat)", "#0a4f96").replaceAll("var(--cool)", "#b3451d"), "image/svg+xml");
    }
    const canvas = view.querySelector("canvas.head") ?? view.querySelector("canvas");
    const blob = await new Promise((resolve) => canvas.toBlob(resolve));
    this.#host.save(`${name}.png`, blob, "image/png");
  }
}
