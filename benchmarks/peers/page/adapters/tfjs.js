// TensorFlow.js on its WebGPU backend. It has no graph compiler, so each row has the eager form alone.

import { integers, uniform } from "../data.js";

// The CPU's backend is needed too: what is small or has no kernel goes there.
const FILES = {
  "@tensorflow/tfjs-core": "dist/tf-core.min.js",
  "@tensorflow/tfjs-backend-cpu": "dist/tf-backend-cpu.min.js",
  "@tensorflow/tfjs-backend-webgpu": "dist/tf-backend-webgpu.min.js",
};

export async function open({ packages }) {
  for (const [name, file] of Object.entries(FILES)) importScripts(packages[name] + file);
  const { tf } = globalThis;
  if (!(await tf.setBackend("webgpu"))) throw new Error("tfjs does not take the webgpu backend here");
  await tf.ready();
  const backend = tf.backend();
  return {
    version: tf.version_core,
    // A submit with an open pass would make an invalid command buffer, whose work is dropped.
    async sync() {
      backend.endComputePassEncoder();
      backend.submitQueue();
      await backend.queue.onSubmittedWorkDone();
    },
    read: (output) => output.data(),
    free: (output) => output.dispose(),
    rows: rows(tf),
  };
}

function rows(tf) {
  const tensor = (shape, seed, scale) => tf.tensor(uniform(tf.util.sizeFromShape(shape), seed, scale), shape);
  const several = (row, shape, seed, scale) =>
    Array.from({ length: row.inputs }, (_, i) => tensor(shape, seed + 100 * i, scale));
  /** The one form: a function of the unit's own input and of what all units share. */
  const eager = (inputs, shared, unit) => ({
    eager: {
      unit: (i) => tf.tidy(() => unit(inputs[i], ...shared)),
      after: () => tf.dispose([inputs, shared]),
    },
  });
  return {
    matmul: (row) => eager(several(row, [row.n, row.n], 1), [tensor([row.n, row.n], 2)], (a, b) => tf.matMul(a, b)),
    chain(row) {
      const shared = [tensor([row.n], 4, 0.9), tensor([row.n], 5)];
      return eager(several(row, [row.n], 3), shared, (x, m, c) => {
        for (let k = 0; k < row.ops; k += 2) x = tf.add(tf.mul(x, m), c);
        return x;
      });
    },
  };
}
