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
 *
 * Programs of the page share that Python by pellucid.js.
 *
 * Nothing is fetched but from the site and the model's address. No headers are needed; with cross-origin isolation
 * `pellucid-repl` can also be interrupted. A worker cannot be started across origins: so a page of another origin has these
 * modules from the package (https://SITE/pellucid-VERSION.tgz), and says `<meta name="pellucid-site" content="https://SITE/">`.
 * The strictest Content-Security-Policy under which all works, SITE and the models' servers being 'self' or named:
 *
 *   default-src 'none'; script-src 'self' SITE 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' SITE MODELS;
 *   style-src 'self'; img-src data:
 *
 * Plots (the view ranks) bring a style of their own, which needs 'unsafe-inline' in style-src; without it they are plainer.
 */

import attention from "./views/attention.js";
import lensGrid from "./views/lens_grid.js";
import { Model, show } from "./views/model.js";
import { make } from "./views/parts.js";
import rankLines from "./views/rank_lines.js";
import { ask, printed } from "./shared.js";
import { missing, SHIPPING } from "./webgpu_advice.js";

const VIEWS = { lens: lensGrid, attention, ranks: rankLines };
const STYLES = ["style.css", "views/lens_grid.css", "views/views.css"];
const SHEET = new CSSStyleSheet();
SHEET.replaceSync(":host { display: block; color: var(--text); } .component { overflow-x: auto; } pre { overflow: auto; white-space: pre-wrap; } textarea { width: 100%; font-family: var(--mono); }");

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
    root.adoptedStyleSheets = [SHEET];
    root.append(this.status, this.box);
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
    const reason = await missing();
    if (turn !== this.#turn) return;
    if (reason) {
      this.status.textContent = `${reason} It is in ${SHIPPING.join("; ")}.`;
      return;
    }
    this.status.textContent = "Loading…";
    try {
      const asked = [source, prompt, Number(this.getAttribute("tokens") ?? 6), name, this.getAttribute("plan") ?? ""];
      const data = await ask("await pellucid_component.show(*{given})", asked);
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
    let told = "";
    const off = printed((text) => (told += text));
    try {
      const value = await ask("await pellucid_component.run({given}, globals())", this.#code.value);
      this.#output.textContent = told + (value ?? "");
      this.status.textContent = "";
    } catch (error) {
      this.#output.textContent = told + error.message;
      this.status.textContent = sentence(error);
    } finally {
      off();
      button.disabled = false;
    }
  }
}

customElements.define("pellucid-lens", PellucidLens);
customElements.define("pellucid-repl", PellucidRepl);
