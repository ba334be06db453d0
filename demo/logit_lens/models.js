/** Before a model is loaded: what it will take, by its headers alone, what the device offers, and models to choose from. */

import { make } from "../../web/views/parts.js";
import { bytes, lastName } from "../support.js";

const LIST = new URL("models.json", import.meta.url);
const element = (id) => document.getElementById(id);

/** 134515008 as "135 M". */
function count(value) {
  const [unit, sign] = value < 1e6 ? [1e3, "k"] : value < 1e9 ? [1e6, "M"] : [1e9, "B"];
  return `${Number((value / unit).toPrecision(3))} ${sign}`;
}

/** What a model takes, in one line. */
function sizes({ parameters, download, weights, cache, tokens }) {
  const grows = cache ? `, and ${bytes(cache)} for ${tokens.toLocaleString("en")} tokens` : "";
  return `${count(parameters)} parameters · ${bytes(download)} to fetch · ${bytes(weights)} on the device${grows}`;
}

/** What stands against it: sentences. */
function against({ loads_with, weights, download, largest, buffer }, room, keeps) {
  const memory = (navigator.deviceMemory ?? Infinity) * 1e9; // what browsers tell is rounded, and 8 at most
  return [
    loads_with !== "AutoModelForCausalLM" && `This page cannot open it: it ${loads_with ? `is for ${loads_with}` : "is of no architecture that Pellucid knows"}.`,
    largest > buffer && `Its largest tensor, of ${bytes(largest)}, does not fit into a buffer of this device, which has ${bytes(buffer)} at most. Take a more strongly quantized one.`,
    weights > memory && `That is more than the ${bytes(memory)} of memory that the browser tells of.`,
    keeps && download > room && `There is no room for a copy: ${bytes(room)} are left.`,
  ].filter(Boolean);
}

export class Models {
  #host;
  #asks = 0;

  /** @param host `run(code, inputs)`, `load(source, name)`, `isFree()`, `failed(error)`. */
  constructor(host) {
    this.#host = host;
    element("estimate").addEventListener("click", () => this.#tell(element("source").value.trim()));
    element("source").addEventListener("input", () => (element("takes").hidden = true));
    element("models").addEventListener("toggle", ({ target }) => target.open && this.#list(), { once: true });
  }

  /** Sizes by the headers; a name for each question, for inputs are globals, and several are asked at one time. */
  #estimate(source) {
    const name = `estimated${this.#asks++}`;
    return this.#host.run(`await estimate(${name})`, { [name]: source });
  }

  /** Say what the model at an address takes. */
  async #tell(source) {
    if (!source || !this.#host.isFree()) return;
    const shown = element("takes");
    shown.hidden = false;
    shown.replaceChildren("Reading the header…");
    try {
      const found = await this.#estimate(source);
      const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
      const has = `${found.device || "This device"} makes buffers of up to ${bytes(found.buffer)}; this page has ${bytes(found.used)} on it.`;
      const bad = against(found, quota - usage, element("keep-copy").checked);
      const about = [found.architecture, Object.keys(found.formats).join(", "), found.licence].filter(Boolean).join(" · ");
      shown.replaceChildren(make("strong", {}, sizes(found)), make("br"), make("span", { class: "quiet" }, about), make("br"), has, ...bad.map((text) => make("p", { class: "against" }, text)));
    } catch (error) {
      shown.hidden = true;
      this.#host.failed(error);
    }
  }

  /** The models to choose from, each with its sizes as soon as its header was read. */
  async #list() {
    const known = await (await fetch(LIST)).json();
    const rows = known.map(({ path, hub, about }) => {
      const source = hub ?? new URL(path, LIST).pathname;
      const name = hub ?? lastName(source);
      const load = make("button", { type: "button", "aria-label": `Load ${name}` }, "Load");
      load.addEventListener("click", () => this.#host.isFree() && this.#host.load(source, name));
      const size = make("span", { class: "quiet numbers" }, "reading its header…");
      return { source, size, row: make("li", {}, load, make("div", {}, make("strong", {}, name), ` ${about}`, make("br"), size)) };
    });
    element("models-list").replaceChildren(...rows.map(({ row }) => row));
    await Promise.all(rows.map(async ({ source, size }) => {
      const found = await this.#estimate(source).catch(() => null);
      size.textContent = found ? sizes(found) : "cannot be reached from here";
    }));
  }
}
