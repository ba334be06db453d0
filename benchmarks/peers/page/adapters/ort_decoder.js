// Decoding with ONNX Runtime Web: a graph of SmolLM2-135M's shape with random 4-bit weights; the cache stays on the device.

import { integers } from "../data.js";

/** The rows prefill and decode; an output is the ids that were chosen. */
export function decoderRows(ort, session, graphs) {
  const int64 = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);

  class Decoder {
    #run;
    #row;
    #cache = null;
    #length = 0;

    static async open(row) {
      const decoder = new Decoder();
      decoder.#row = row;
      const cache = Array.from({ length: row.layers }, (_, i) => [`present.${i}.key`, `present.${i}.value`]).flat();
      decoder.#run = await session("llm", {
        externalData: [{ path: "llm.bin", data: `${graphs}llm.bin` }],
        preferredOutputLocation: { logits: "cpu", ...Object.fromEntries(cache.map((name) => [name, "gpu-buffer"])) },
      });
      return decoder;
    }

    /** Run ids behind those in the cache; resolves to the likeliest next id. */
    async step(ids) {
      const { layers, kv_heads, head_dim, vocabulary } = this.#row;
      this.#length += ids.length;
      const feeds = { input_ids: int64(ids), attention_mask: int64(new Array(this.#length).fill(1)) };
      for (let i = 0; i < layers; i++) {
        for (const part of ["key", "value"]) {
          feeds[`past_key_values.${i}.${part}`] =
            this.#cache?.[`present.${i}.${part}`] ?? new ort.Tensor("float32", [], [1, kv_heads, 0, head_dim]);
        }
      }
      const { logits, ...cache } = await this.#run.run(feeds);
      this.#forget();
      this.#cache = cache;
      const last = (await logits.getData()).subarray(-vocabulary);
      return last.reduce((best, value, id) => (value > last[best] ? id : best), 0);
    }

    restart() {
      this.#forget();
      this.#length = 0;
    }

    #forget() {
      for (const tensor of Object.values(this.#cache ?? {})) tensor.dispose();
      this.#cache = null;
    }

    async release() {
      this.restart();
      await this.#run.release();
    }
  }

  const promptOf = (row, i) => [...integers(row.prompt, 40 + 100 * i, row.vocabulary)];
  const note = "random weights of the same shape, 4 bits in blocks of 32; the next id is chosen in JavaScript";
  return {
    async prefill(row) {
      const decoder = await Decoder.open(row);
      async function unit(i) {
        decoder.restart();
        return Float32Array.of(await decoder.step(promptOf(row, i)));
      }
      return { captured: { unit, after: () => decoder.release(), note } };
    },
    async decode(row) {
      const decoder = await Decoder.open(row);
      let next = 0;
      async function before() {
        decoder.restart();
        next = await decoder.step(promptOf(row, 0));
      }
      async function unit() {
        const ids = [];
        for (let k = 0; k < row.new; k++) ids.push((next = await decoder.step([next])));
        return Float32Array.from(ids);
      }
      return { captured: { unit, before, follows: true, after: () => decoder.release(), note } };
    },
  };
}
