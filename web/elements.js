/**
 * Components for any page. All of a page share one worker with one Python, and each model is loaded once.
 *
 *   <script type="module" src="https://SITE/web/elements.js"></script>
 *   <pellucid-lens model="OWNER/NAME" prompt="The capital of France is" tokens="6"></pellucid-lens>
 *   <pellucid-lens model="OWNER/NAME" prompt="..." view="attention" plan='{"ablate": [...]}'></pellucid-lens>
 *   <pellucid-repl>import pellucid as torch
 *   torch.randn(3, 3) @ torch.eye(3)</pellucid-repl>
 *
 * pellucid-lens   view is lens (the default), attention or ranks; the model is an address or a hub id. Attributes that change draw
 *                 anew; `element.data` is what is drawn, with typed arrays, and the event `drawn` tells that it is there.
 * pellucid-repl   a program with a button that runs it; what it prints and its last value stand below.
 * python()        the shared Python of boot.js, for the page's own use
 *
 * Nothing is fetched but from the site and the model's address. A Content-Security-Policy needs the site in script-src (with
 * 'wasm-unsafe-eval'), style-src, worker-src and connect-src. No other headers are needed; with cross-origin isolation
 * `pellucid-repl` can also be interrupted. The page and the site are of one origin, for a worker cannot be started across.
 */

import { boot } from "./boot.js";
import attention from "./views/attention.js";
import lensGrid from "./views/lens_grid.js";
import { Model, show } from "./views/model.js";
import { make } from "./views/parts.js";
import rankLines from "./views/rank_lines.js";

const VIEWS = { lens: lensGrid, attention, ranks: rankLines };
const STYLES = ["style.css", "views/lens_grid.css", "views/views.css"];
const FOLDER = "/pellucid_elements";
const printers = new Set();
let booting = null;
let asks = 0;

/** The Python that all components share, started by the first that needs it. */
export function python() {
  booting ??= start();
  booting.catch(() => (booting = null)); // the next component may try again
  return booting;
}

async function start() {
  const print = (text) => printers.forEach((printer) => printer(text));
  const started = await boot({ onStdout: print, onStderr: print, onCrash: () => (booting = null) });
  const source = await (await fetch(new URL("component.py", import.meta.url))).text();
  await started.writeFile(`${FOLDER}/pellucid_component.py`, source);
  await started.run(`import sys; sys.path.append("${FOLDER}"); import pellucid_component`);
  return started;
}

/** Run code with a value under a name of its own: inputs are globals, and others ask meanwhile. */
function ask(shared, code, value) {
  const name = `_asked${asks++}`;
  return shared.run(code(`globals().pop("${name}")`), { [name]: value });
}

/** The last line of a traceback: what happened, and what to do. */
function sentence(error) {
  return String(error.message).trimEnd().split("\n").at(-1).replace(/^pellucid\.[\w.]+: /, "");
}

class Component extends HTMLElement {
  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    for (const name of STYLES) root.append(make("link", { rel: "stylesheet", href: new URL(name, import.meta.url).href }));
    this.box = make("div", { class: "component" });
    this.status = make("p", { role: "status", class: "quiet" });
    root.append(make("style", {}, ":host { display: block; color: var(--text); } .component { overflow-x: auto; } pre { overflow: auto; white-space: pre-wrap; } textarea { width: 100%; font-family: var(--mono); }"), this.status, this.box);
  }
}

class PellucidLens extends Component {
  static observedAttributes = ["model", "prompt", "plan", "tokens", "view"];
  #model = new Model({ data: null });
  #end = null;
  #turn = 0;

  get data() {
    return this.#model.get("data");
  }

  connectedCallback() {
    this.#draw();
  }

  disconnectedCallback() {
    this.#turn++;
    this.#end?.();
    this.#end = null;
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#draw();
  }

  async #draw() {
    const turn = ++this.#turn;
    await null; // attributes that are set one after the other are one change
    if (turn !== this.#turn) return;
    const [source, prompt, name] = [this.getAttribute("model"), this.getAttribute("prompt"), this.getAttribute("view") ?? "lens"];
    if (!source || !prompt || !(name in VIEWS)) {
      this.status.textContent = `pellucid-lens needs model, prompt and a view of ${Object.keys(VIEWS).join(", ")}.`;
      return;
    }
    this.status.textContent = "Loading…";
    try {
      const shared = await python();
      const asked = [source, prompt, Number(this.getAttribute("tokens") ?? 6), name, this.getAttribute("plan") ?? ""];
      const data = await ask(shared, (given) => `await pellucid_component.show(*${given})`, asked);
      if (turn !== this.#turn) return;
      this.#end?.();
      this.#model.set("data", data);
      this.#end = await show(VIEWS[name], this.box, this.#model);
      this.status.textContent = `${prompt}${data.text}`;
      this.dispatchEvent(new CustomEvent("drawn"));
    } catch (error) {
      if (turn === this.#turn) this.status.textContent = sentence(error);
    }
  }
}

class PellucidRepl extends Component {
  #code = make("textarea", { spellcheck: "false", "aria-label": "Python" });
  #output = make("pre", { role: "log", tabindex: "0", "aria-label": "What Python printed" });

  connectedCallback() {
    if (this.#code.isConnected) return;
    this.#code.value = this.textContent.trim();
    this.#code.rows = Math.max(2, this.#code.value.split("\n").length);
    const run = make("button", { type: "button" }, "Run");
    run.addEventListener("click", () => this.#run(run));
    this.#code.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey)) return;
      event.preventDefault();
      this.#run(run);
    });
    this.box.append(this.#code, run, this.#output);
  }

  async #run(button) {
    if (button.disabled) return;
    button.disabled = true;
    this.status.textContent = "Running…";
    let printed = "";
    const printer = (text) => (printed += text);
    printers.add(printer);
    try {
      const shared = await python();
      const value = await ask(shared, (given) => `await pellucid_component.run(${given}, globals())`, this.#code.value);
      this.#output.textContent = printed + (value ?? "");
      this.status.textContent = "";
    } catch (error) {
      this.#output.textContent = printed + error.message;
      this.status.textContent = sentence(error);
    } finally {
      printers.delete(printer);
      button.disabled = false;
    }
  }
}

customElements.define("pellucid-lens", PellucidLens);
customElements.define("pellucid-repl", PellucidRepl);
