// TensorFlow.js on its WebGPU backend. It has no graph compiler, so each row has the eager form alone.

import { series, uniform } from "../data.js";
import { ops } from "./tfjs_ops.js";
import { train } from "./tfjs_train.js";
import { block, layerNorm, parameters, scan } from "./tfjs_layers.js";
import { blockParameters } from "../models.js";

// The whole library: the smaller package of its core has no gradients.
const FILES = {
  "@tensorflow/tfjs": "dist/tf.min.js",
  "@tensorflow/tfjs-backend-webgpu": "dist/tf-backend-webgpu.min.js",
};

export async function open({ packages }) {
  for (const [name, file] of Object.entries(FILES)) importScripts(packages[name] + file);
  const { tf } = globalThis;
  if (!(await tf.setBackend("webgpu"))) throw new Error("tfjs does not take the webgpu backend here");
  await tf.ready();
  const backend = tf.backend();
  async function sync() {
    if (backend.commandEncoder) {
      // A submit with an open pass would make an invalid command buffer, whose work is dropped.
      backend.endComputePassEncoder();
      backend.submitQueue();
    }
    await backend.queue.onSubmittedWorkDone();
  }
  return {
    sync,
    read: (output) => output.data(),
    free: (output) => output.dispose(),
    rows: { ...rows(tf, sync), ...train(tf), ...ops(tf) },
  };
}

function rows(tf, sync) {
  const tensor = (shape, seed, scale, offset) =>
    tf.tensor(uniform(tf.util.sizeFromShape(shape), seed, scale, offset), shape);
  /** Inputs for all units, on the device: the library would upload each at its first use. */
  function several(row, shape, seed, scale, offset) {
    const values = series(row.inputs, tf.util.sizeFromShape(shape), seed, scale, offset);
    const made = Array.from({ length: row.inputs }, (_, i) => tf.tensor(values(i), shape));
    for (const { dataId } of made) tf.backend().uploadToGPU(dataId);
    return made;
  }
  /** The one form: a function of the unit's own input and of what all units share. */
  const eager = (inputs, shared, unit, note) => ({
    eager: {
      unit: (i) => tf.tidy(() => unit(inputs[i], ...shared)),
      after: () => tf.dispose([inputs, shared]),
      note,
    },
  });
  const matrices = (row) => several(row, [row.rows, row.columns], 6, 4);
  return {
    matmul: ({ n, ...row }) =>
      eager(several(row, [n, n], 1), [tensor([n, n], 2)], (a, b) => tf.matMul(a, b)),
    chain({ n, ops, ...row }) {
      const inputs = several(row, [n], 3);
      return eager(inputs, [tensor([n], 4, 0.9), tensor([n], 5)], (x, m, c) => {
        for (let k = 0; k < ops; k += 2) x = tf.add(tf.mul(x, m), c);
        return x;
      });
    },
    softmax: (row) => eager(matrices(row), [], (x) => tf.softmax(x)),
    layer_norm(row) {
      const shared = [tensor([row.columns], 7), tensor([row.columns], 8)];
      return eager(matrices(row), shared, (x, gain, shift) => layerNorm(tf, x, gain, shift), "composed of 8 ops");
    },
    sum: ({ n, ...row }) => eager(several(row, [n], 9, 1, 1), [], (x) => tf.sum(x)),
    conv2d({ channels, size, out, kernel, ...row }) {
      // The library's own layout has the channels last; the output is read in the order of the others.
      const inputs = several(row, [1, channels, size, size], 10).map((x) => {
        const last = tf.transpose(x, [0, 2, 3, 1]);
        x.dispose();
        return last;
      });
      const filter = tf.transpose(tensor([out, channels, kernel, kernel], 21, 0.1), [2, 3, 1, 0]);
      const forms = eager(inputs, [filter], (x, w) => tf.conv2d(x, w, 1, "same"), "channels last");
      forms.eager.read = (y) => tf.tidy(() => tf.transpose(y, [0, 3, 1, 2])).data();
      return forms;
    },
    block(row) {
      const weights = parameters(tf, blockParameters(row));
      const inputs = several(row, [row.tokens, row.d], 22);
      return eager(inputs, [weights], (x, w) => block(tf, x, w, "", row));
    },
    scan({ tokens, channels, states, ...row }) {
      const inputs = several(row, [tokens, channels], 40);
      const shared = [
        tensor([tokens, channels, 1], 41, 0.05, 0.1),
        tensor([channels, states], 42, 0.5, -1),
        tensor([tokens, 1, states], 43),
        tensor([tokens, 1, states], 44),
      ];
      return eager(inputs, shared, (...given) => scan(tf, ...given), "a loop over positions, 2 ops each");
    },
    upload({ n, ...row }) {
      const values = series(row.inputs, n, 23);
      const data = Array.from({ length: row.inputs }, (_, i) => values(i));
      const unit = (i) => {
        const uploaded = tf.tensor(data[i]);
        tf.slice(uploaded, [5], [1]).dispose(); // it uploads at the first use
        return uploaded;
      };
      return { eager: { unit, note: "with a slice, for it uploads at the first use" } };
    },
    readback({ n, ...row }) {
      const inputs = several(row, [n], 24, 1, 1);
      let sums = [];
      async function before(k) {
        tf.dispose(sums);
        sums = inputs.slice(0, k).map((x) => tf.sum(x));
        await sync();
      }
      return { eager: { unit: (i) => sums[i].data(), before, after: () => tf.dispose([inputs, sums]) } };
    },
  };
}
