// Training with jax-js: one jitted function of the parameters, the moments and the batch gives the next ones.

import { integers, uniform } from "../data.js";
import { gptParameters, mlpParameters } from "../models.js";
import { block, layerNorm, parameters } from "./jax_layers.js";

const [BETA1, BETA2, EPSILON] = [0.9, 0.999, 1e-8];

/** The rows train_mlp and train_gpt. */
export function train(jax, sync) {
  const { numpy: np, nn, jit, tree, valueAndGrad } = jax;

  /** AdamW as PyTorch has it; `corrections` are 1 - beta1^t and 1 - beta2^t. */
  function adamw({ lr, decay }, parameter, gradient, mean, square, corrections) {
    const m = mean.mul(BETA1).add(gradient.ref.mul(1 - BETA1));
    const v = square.mul(BETA2).add(np.square(gradient).mul(1 - BETA2));
    const [first, second] = corrections;
    const denominator = np.sqrt(v.ref.div(second)).add(EPSILON);
    const next = parameter.mul(1 - lr * decay).sub(m.ref.div(first).mul(lr).div(denominator));
    return [next, m, v];
  }

  function stepOf(row, lossOf) {
    return jit((weights, means, squares, corrections, batch) => {
      const [loss, gradients] = valueAndGrad((w) => lossOf(w, tree.ref(batch)))(tree.ref(weights));
      tree.dispose(batch);
      const structure = tree.structure(weights);
      const columns = [weights, gradients, means, squares].map((each) => tree.leaves(each));
      const next = columns[0].map((_, k) =>
        adamw(row, ...columns.map((column) => column[k]), corrections.map((each) => each.ref)),
      );
      tree.dispose(corrections);
      return [loss, ...[0, 1, 2].map((part) => tree.unflatten(structure, next.map((each) => each[part])))];
    });
  }

  /** Form of a training: each repetition begins with the first parameters. */
  async function training(row, list, batches, lossOf) {
    await sync(tree.leaves(batches));
    const step = stepOf(row, lossOf);
    const zeros = () => parameters(np, list.map((each) => ({ ...each, values: new Float32Array(each.values.length) })));
    let state = null;
    const forget = () => state && tree.dispose(state);
    async function before() {
      forget();
      state = [parameters(np, list), zeros(), zeros()];
      await sync(tree.leaves(state));
    }
    function unit(i) {
      const corrections = [BETA1, BETA2].map((beta) => np.array(1 - beta ** (i + 1)));
      const [loss, ...next] = step(...state, corrections, tree.ref(batches[i]));
      state = next;
      return loss;
    }
    const named = (name) => name.split(".").reduce((group, key) => group[key], state[0]);
    const left = () => Promise.all(row.watched.map((name) => named(name).ref.data()));
    function after() {
      forget();
      step.dispose();
      tree.dispose(batches);
    }
    return { captured: { unit, before, left, after, note: "the whole step by jit" } };
  }

  const crossEntropy = (logits, labels, classes) => {
    const picked = nn.logSoftmax(logits, -1).mul(nn.oneHot(labels, classes));
    return np.mean(np.sum(picked, -1)).mul(-1);
  };
  const several = (row, make) => Array.from({ length: row.inputs }, (_, i) => make(100 * i));
  const ints = (shape, seed, limit) =>
    np.array(integers(shape.reduce((a, b) => a * b), seed, limit), { dtype: np.int32 }).reshape(shape);

  return {
    train_mlp(row) {
      const [inputs, classes] = [row.widths[0], row.widths.at(-1)];
      const batches = several(row, (seed) => ({
        x: np.array(uniform(row.batch * inputs, 30 + seed)).reshape([row.batch, inputs]),
        labels: ints([row.batch], 31 + seed, classes),
      }));
      const last = row.widths.length - 2;
      return training(row, mlpParameters(row), batches, (w, { x, labels }) => {
        for (let i = 0; i <= last; i++) {
          x = np.matmul(x, w[i].weight).add(w[i].bias);
          if (i < last) x = nn.relu(x);
        }
        return crossEntropy(x, labels, classes);
      });
    },
    train_gpt(row) {
      const { batch, tokens, vocabulary, layers, d } = row;
      const batches = several(row, (seed) => ({
        ids: ints([batch, tokens], 32 + seed, vocabulary),
        labels: ints([batch * tokens], 33 + seed, vocabulary),
      }));
      return training(row, gptParameters(row), batches, (w, { ids, labels }) => {
        // The library does not differentiate a gather; the product with one-hot rows is the same.
        let x = np.matmul(nn.oneHot(ids, vocabulary), w.ids).add(w.places);
        for (let i = 0; i < layers; i++) x = block(jax, x, w[i], row, true);
        const hidden = layerNorm(nn, x, w.gain, w.shift).reshape([batch * tokens, d]);
        return crossEntropy(np.matmul(hidden, w.head), labels, vocabulary);
      });
    },
  };
}
