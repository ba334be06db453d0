// jax-js on WebGPU: eager, and compiled by jit ("captured"). A function of it consumes its arguments; `.ref` keeps one for later.

import { series, uniform } from "../data.js";
import { blockParameters } from "../models.js";
import { block, layerNorm, parameters } from "./jax_layers.js";
import { ops } from "./jax_ops.js";
import { train } from "./jax_train.js";

export async function open({ packages }) {
  const jax = await import(`${packages["@jax-js/jax"]}dist/index.js`);
  const devices = await jax.init("webgpu");
  if (!devices.includes("webgpu")) throw new Error("jax-js does not take the webgpu device here");
  jax.defaultDevice("webgpu");
  const { queue } = jax.getWebGPUDevice();
  async function sync(outputs) {
    await jax.blockUntilReady(outputs);
    await queue.onSubmittedWorkDone();
  }
  return {
    sync,
    read: (output) => output.ref.data(),
    free: (output) => output.dispose(),
    rows: { ...(await rows(jax, sync)), ...train(jax, sync), ...ops(jax) },
  };
}

function rows(jax, sync) {
  const { numpy: np, nn, lax, jit, tree } = jax;
  const size = (shape) => shape.reduce((a, b) => a * b, 1);
  const tensor = (shape, seed, scale, offset) =>
    np.array(uniform(size(shape), seed, scale, offset)).reshape(shape);

  /** Inputs for all units, on the device before anything is measured. */
  async function several(row, shape, seed, scale, offset) {
    const values = series(row.inputs, size(shape), seed, scale, offset);
    const made = Array.from({ length: row.inputs }, (_, i) => np.array(values(i)).reshape(shape));
    await sync(made);
    return made;
  }

  /** The eager form of a function, and the one by jit unless it is a single op. */
  function forms(inputs, shared, f, captured = true) {
    const after = () => tree.dispose([inputs, shared]);
    const unit = (g) => (i) => g(inputs[i].ref, ...shared.map((each) => tree.ref(each)));
    const made = { eager: { unit: unit(f) } };
    if (captured) {
      const compiled = jit(f);
      made.captured = { unit: unit(compiled), note: "jit", after: () => compiled.dispose() };
    }
    made.eager.after = after;
    return made;
  }

  const matrices = (row) => several(row, [row.rows, row.columns], 6, 4);
  return {
    async matmul({ n, ...row }) {
      const inputs = await several(row, [n, n], 1);
      return forms(inputs, [tensor([n, n], 2)], (a, b) => np.matmul(a, b), false);
    },
    async chain({ n, ops, ...row }) {
      const inputs = await several(row, [n], 3);
      return forms(inputs, [tensor([n], 4, 0.9), tensor([n], 5)], (x, m, c) => {
        for (let k = 0; k < ops; k += 2) x = x.mul(m.ref).add(c.ref);
        tree.dispose([m, c]);
        return x;
      });
    },
    softmax: async (row) => forms(await matrices(row), [], (x) => nn.softmax(x, -1)),
    async layer_norm(row) {
      const shared = [tensor([row.columns], 7), tensor([row.columns], 8)];
      return forms(await matrices(row), shared, (x, gain, shift) => layerNorm(nn, x, gain, shift));
    },
    async sum({ n, ...row }) {
      return forms(await several(row, [n], 9, 1, 1), [], (x) => np.sum(x), false);
    },
    async conv2d({ channels, size, out, kernel, ...row }) {
      const inputs = await several(row, [1, channels, size, size], 10);
      const filter = tensor([out, channels, kernel, kernel], 21, 0.1);
      return forms(inputs, [filter], (x, w) => lax.conv(x, w, [1, 1], "SAME"), false);
    },
    async block(row) {
      const inputs = await several(row, [1, row.tokens, row.d], 22);
      return forms(inputs, [parameters(np, blockParameters(row))], (x, w) => block(jax, x, w, row, false));
    },
    upload({ n, ...row }) {
      const values = series(row.inputs, n, 23);
      const data = Array.from({ length: row.inputs }, (_, i) => values(i));
      return { eager: { unit: (i) => np.array(data[i]) } };
    },
    async readback({ n, ...row }) {
      const inputs = await several(row, [n], 24, 1, 1);
      let sums = [];
      async function before(k) {
        sums = inputs.slice(0, k).map((x) => np.sum(x.ref));
        await sync(sums);
      }
      const unit = (i) => sums[i].data();
      return { eager: { unit, before, after: () => tree.dispose(inputs) } };
    },
  };
}
