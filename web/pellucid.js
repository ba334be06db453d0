/**
 * Pellucid for programs of a page: language models with what is inside them, and Python. The types are in pellucid.d.ts.
 *
 *   import { load, run } from "pellucid";                         // or https://SITE/web/pellucid.js
 *   const model = await load("OWNER/NAME", { onProgress });
 *   for await (const { text } of model.stream("The capital of France is", { max_new_tokens: 8 })) output.append(text);
 *   const seen = await model.look("The capital of France is", { capture: ["attn_probs.*", "resid_post.3"], lens: { top_k: 5 } });
 *   seen.values["resid_post.3"];                                  // { shape: [1, 5, 576], data: Float32Array }
 *   await run("import pellucid as torch; torch.ones(2, device='cpu').tolist()");         // [1, 1]
 *
 * All calls of a page share one worker with one Python, also with the components of elements.js, and each model is loaded once.
 * The Content-Security-Policy is that of elements.js; no other headers are needed.
 */

import { ask, begin, end, heard, printed, shared } from "./shared.js";

export { PythonError, TerminatedError } from "./boot.js";

let keys = 0;

/** Start Python now rather than at the first call, or again after `terminate`; what it is. */
export async function start(options = {}) {
  return (await begin(options)).info;
}

/** The value of a program's last expression; `inputs` become globals. What it prints goes to `onPrint`. */
export async function run(code, inputs = {}, { onPrint } = {}) {
  const python = await shared();
  const off = onPrint ? printed(onPrint) : () => {};
  try {
    return await python.run(code, inputs);
  } finally {
    off();
  }
}

/** End Python and all that it holds; calls reject with TerminatedError from now on, until `start`. */
export const terminate = end;

/** Load a model, or find it: an address, a path, a hub id or a File. */
export async function load(source, { onProgress, signal, keep = false } = {}) {
  signal?.throwIfAborted();
  const key = ++keys;
  const off = heard("pellucid-progress", (told) => told.key === key && onProgress?.(told));
  try {
    const python = await heeding(signal, shared());
    const asked = ask("await pellucid_component.load(*{given})", [key, source, keep], python).then((about) => new Model(about, python));
    return await heeding(signal, asked, () => {
      halt(python, key);
      asked.then((model) => model.release()).catch(() => {}); // it was there before that was heard, or it is not
    });
  } finally {
    off();
  }
}

/** What a promise gives, or the reason of a signal as soon as it is aborted, when `abandon` is called. */
function heeding(signal, promise, abandon = () => {}) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const cut = () => {
      abandon();
      reject(signal.reason);
    };
    if (signal.aborted) return cut();
    signal.addEventListener("abort", cut, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", cut));
  });
}

/** End a call in Python. */
function halt(python, key) {
  ask("pellucid_component.stop({given})", key, python).catch(() => {}); // Python itself was ended
}

class Model {
  #number;
  #python; // the one that holds it

  constructor({ number, ...about }, python) {
    [this.#number, this.#python] = [number, python];
    Object.assign(this, about);
    Object.freeze(this);
  }

  /** New tokens one by one, as they come. Leaving the loop stops the model; so does the signal, whose reason is then thrown. */
  async *stream(prompt, { chat = false, plan = null, signal, ...settings } = {}) {
    signal?.throwIfAborted();
    const key = ++keys;
    const ready = [];
    let wake = () => {};
    let outcome = null;
    const end = (how) => {
      outcome ??= how;
      wake();
    };
    const off = heard("pellucid-token", (token) => {
      if (token.key !== key) return;
      ready.push({ id: token.id, token: token.token, text: token.text });
      wake();
    });
    const abort = () => {
      ready.length = 0; // as a response's body, it ends where it is cut
      end({ error: signal.reason, isCut: true });
    };
    signal?.addEventListener("abort", abort, { once: true });
    const given = [key, this.#number, prompt, chat, plan && JSON.stringify(plan), settings];
    ask("await pellucid_component.stream(*{given})", given, this.#python).then(() => end({}), (error) => end({ error }));
    try {
      for (;;) {
        while (ready.length) yield ready.shift();
        if (outcome && "error" in outcome) throw outcome.error;
        if (outcome) return;
        await new Promise((resolve) => (wake = resolve));
      }
    } finally {
      off();
      signal?.removeEventListener("abort", abort);
      if (!outcome || outcome.isCut) halt(this.#python, key);
    }
  }

  /** What one run of a text shows at the points that are captured, and what each layer would have said. */
  look(prompt, { capture = [], lens = null, plan = {}, chat = false } = {}) {
    const wanted = JSON.stringify({ ...plan, capture, ...(lens ? { lens } : {}) });
    return ask("await pellucid_component.look(*{given})", [this.#number, prompt, chat, wanted], this.#python);
  }

  /** Ids of a text, and the text of each. */
  tokenize(text) {
    return ask("pellucid_component.tokenize(*{given})", [this.#number, text], this.#python);
  }

  /** Let go of the model and its memory. */
  release() {
    return ask("pellucid_component.release({given})", this.#number, this.#python);
  }
}
