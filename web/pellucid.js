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

import { ask, end, heard, printed, shared } from "./shared.js";

export { PythonError } from "./boot.js";

let keys = 0;

/** Start Python now rather than at the first call; what it is. */
export async function start(options = {}) {
  return (await shared(options)).info;
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

/** End Python and all that it holds. */
export const terminate = end;

/** Load a model, or find it: an address, a path, a hub id or a File. */
export async function load(source, { onProgress, signal, keep = false } = {}) {
  const key = ++keys;
  const off = heard("pellucid-progress", (told) => told.key === key && onProgress?.(told));
  try {
    const about = await until(signal, key, "await pellucid_component.load(*{given})", [key, source, keep]);
    return new Model(about);
  } finally {
    off();
  }
}

/** Ask Python for what a signal ends there. */
async function until(signal, key, code, given) {
  signal?.throwIfAborted();
  const stop = () => ask("pellucid_component.stop({given})", key).catch(() => {}); // it was ended
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await ask(code, given);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

class Model {
  #number;

  constructor({ number, ...about }) {
    this.#number = number;
    Object.assign(this, about);
    Object.freeze(this);
  }

  /** New tokens one by one, as they come. Leaving the loop stops the model. */
  async *stream(prompt, { chat = false, plan = null, signal, ...settings } = {}) {
    const key = ++keys;
    const ready = [];
    let wake = () => {};
    let outcome = null;
    const off = heard("pellucid-token", (token) => {
      if (token.key !== key) return;
      ready.push({ id: token.id, token: token.token, text: token.text });
      wake();
    });
    const given = [key, this.#number, prompt, chat, plan && JSON.stringify(plan), settings];
    until(signal, key, "await pellucid_component.stream(*{given})", given).then(
      () => (outcome = {}),
      (error) => (outcome = { error }),
    ).finally(() => wake());
    try {
      for (;;) {
        while (ready.length) yield ready.shift();
        if (outcome?.error) throw outcome.error;
        if (outcome) return;
        await new Promise((resolve) => (wake = resolve));
      }
    } finally {
      off();
      if (!outcome) ask("pellucid_component.stop({given})", key).catch(() => {}); // it was ended
    }
  }

  /** What one run of a text shows at the points that are captured, and what each layer would have said. */
  look(prompt, { capture = [], lens = null, plan = {}, chat = false } = {}) {
    const wanted = JSON.stringify({ ...plan, capture, ...(lens ? { lens } : {}) });
    return ask("await pellucid_component.look(*{given})", [this.#number, prompt, chat, wanted]);
  }

  /** Ids of a text, and the text of each. */
  tokenize(text) {
    return ask("pellucid_component.tokenize(*{given})", [this.#number, text]);
  }

  /** Let go of the model and its memory. */
  release() {
    return ask("pellucid_component.release({given})", this.#number);
  }
}
