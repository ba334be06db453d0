/**
 * The one Python of a page, for its components (elements.js) and its programs (pellucid.js), started by the first that needs it.
 *
 *   const python = await shared();            // of boot.js
 *   const off = printed((text) => ...);       // what Python prints
 *   const off = heard("token", (value) => ...);
 *   await ask("await pellucid_component.f(*{given})", [1, 2]);      // with a value under a name of its own
 *   await end();                              // from now on all of these reject with TerminatedError, until begin()
 *
 * The site's address, where Pyodide and the wheels are, is the folder above this one, or what the page says:
 * `<meta name="pellucid-site" content="https://SITE/">`.
 */

import { boot, folder, TerminatedError } from "./boot.js";

const FOLDER = "/pellucid_elements";
const printers = new Set();
const listeners = new Map(); // by the name of the event
let booting = null;
let hasEnded = false; // by the page's own wish
let address = null; // of the site of the Python that runs
let asks = 0;

/** Start Python, also where it was ended, or find it; options are those of `shared`. */
export function begin(options) {
  hasEnded = false;
  return shared(options);
}

/** Start Python, or find it; `site` and `onProgress` are those of boot.js. */
export function shared({ site = document.querySelector('meta[name="pellucid-site"]')?.content, onProgress } = {}) {
  if (hasEnded) return Promise.reject(new TerminatedError("This page's Python was terminated. Call start() for another."));
  const wanted = site === undefined ? undefined : folder(site, document.baseURI);
  if (booting && wanted !== undefined && wanted !== address) {
    return Promise.reject(new Error(`This page's Python comes from ${address ?? "the site of its own"}, not from ${wanted}. Name one site for the page.`));
  }
  if (!booting) {
    address = wanted;
    const own = { onCrash: () => booting === own.python && forget() }; // another may have been started since
    booting = own.python = start(wanted, onProgress, own);
    booting.catch(own.onCrash); // the next one may try again
  }
  return booting;
}

function forget() {
  booting = address = null;
}

/** Be told what Python prints; what comes back ends that. */
export function printed(printer) {
  printers.add(printer);
  return () => printers.delete(printer);
}

/** Be told of what Python sends under a name; what comes back ends that. */
export function heard(name, listener) {
  if (!listeners.has(name)) listeners.set(name, new Set());
  listeners.get(name).add(listener);
  return () => listeners.get(name).delete(listener);
}

/** Run code with a value, which stands for `{given}`: inputs are globals, and others ask meanwhile. `of` is the only Python that can answer. */
export async function ask(code, value, of = null) {
  const python = of ?? (await shared());
  const name = `_asked${asks++}`;
  return python.run(code.replace("{given}", `globals().pop("${name}")`), { [name]: value });
}

/** End Python, with all models that were loaded; `begin` starts another. */
export async function end() {
  const running = booting;
  forget();
  hasEnded = true;
  await running?.then((python) => python.terminate(), () => {});
}

async function start(site, onProgress, own) {
  const print = (text) => printers.forEach((printer) => printer(text));
  const onEvent = (name, value) => listeners.get(name)?.forEach((listener) => listener(value));
  const python = await boot({ site, onProgress, onStdout: print, onStderr: print, onEvent, onCrash: () => own.onCrash() });
  const source = await (await fetch(new URL("component.py", import.meta.url))).text();
  await python.writeFile(`${FOLDER}/pellucid_component.py`, source);
  await python.run(`import sys; sys.path.append("${FOLDER}"); import pellucid_component`);
  if (!python.info.jspi) await python.run("await pellucid_component.prepare()");
  return python;
}
