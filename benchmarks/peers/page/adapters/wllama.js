// wllama, llama.cpp in WebAssembly: the two rows of a language model, on the same GGUF as ours. Layers are offered to its WebGPU
// backend; where the weights really are is read off its log and noted. It takes prompts as text, not as ids.

import { integers } from "../data.js";
import { Unavailable } from "../measure.js";

const CONTEXT = 256;
// Each is one id of the vocabulary with the space before it.
const WORDS = " the river ran over stone while light moved across a quiet city and people came home with bread".split(/(?= )/);

export async function open({ packages, gguf }) {
  const folder = `${packages["@wllama/wllama"]}esm/`;
  const { Wllama } = await import(`${folder}index.min.js`);
  const log = [];
  const keep = (...words) => log.push(words.join(" "));
  const logger = { debug: keep, log: keep, warn: keep, error: keep };

  async function load() {
    if (!gguf) throw new Unavailable("the weights are not on this machine; scripts/setup fetches them");
    const llama = new Wllama({ default: `${folder}wasm/wllama.wasm` }, { logger, suppressNativeLog: false });
    llama.setCompat(null);
    const blob = await (await fetch(gguf)).blob();
    // One core stays with the page: threads that wait for one that does not run stand still.
    const threads = Math.max(1, navigator.hardwareConcurrency - 1);
    const settings = { n_ctx: CONTEXT, n_batch: CONTEXT, n_threads: threads, n_gpu_layers: 999, n_parallel: 1 };
    await llama.loadModel([blob], settings);
    const places = new Set(log.map((text) => text.match(/(\S+)\s+model buffer size/)?.[1]).filter(Boolean));
    const note = `weights on ${[...places].join(" and ") || "an unknown device"}, ${llama.getNumThreads()} threads`;
    return { llama, note };
  }

  const settings = { temperature: 0, ignore_eos: true, cache_prompt: false };

  /** Texts of as many ids as the row's prompts have; ids that the library adds are counted first. */
  async function prompts(llama, row) {
    const text = (i, length) => [...integers(length, 40 + 100 * i, WORDS.length)].map((k) => WORDS[k]).join("");
    const { timings } = await llama.createCompletion({ ...settings, prompt: text(0, row.prompt), max_tokens: 1 });
    return Array.from({ length: row.inputs }, (_, i) => text(i, 2 * row.prompt - timings.prompt_n));
  }
  return {
    sync: async () => {},
    read: async (output) => output,
    free: () => {},
    rows: {
      async prefill(row) {
        const { llama, note } = await load();
        const texts = await prompts(llama, row);
        async function unit(i) {
          const { timings } = await llama.createCompletion({ ...settings, prompt: texts[i], max_tokens: 1 });
          if (timings.prompt_n !== row.prompt) throw new Error(`its prompt had ${timings.prompt_n} ids`);
          return Float32Array.of(timings.predicted_n);
        }
        return { eager: { unit, after: () => llama.exit(), note } };
      },
      async decode(row) {
        const { llama, note } = await load();
        const [text] = await prompts(llama, row);
        let chunks = null;
        async function before() {
          const options = { ...settings, prompt: text, max_tokens: row.new + 1, stream: true };
          chunks = (await llama.createCompletion(options))[Symbol.asyncIterator]();
          await chunks.next();
        }
        async function unit() {
          let last = null;
          for (let step = await chunks.next(); !step.done; step = await chunks.next()) last = step.value;
          if (last.timings.predicted_n !== row.new + 1) throw new Error(`it made ${last.timings.predicted_n} ids`);
          return Float32Array.of(last.timings.predicted_n);
        }
        return { eager: { unit, before, follows: true, after: () => llama.exit(), note } };
      },
    },
  };
}
