// Training with TensorFlow.js: its Adam, with the decay of AdamW applied to the parameters before each step.

import { integers, uniform } from "../data.js";
import { gptParameters, mlpParameters } from "../models.js";
import { block, layerNorm } from "./tfjs_layers.js";

/** The rows train_mlp and train_gpt. */
export function train(tf) {
  const several = (row, make) => Array.from({ length: row.inputs }, (_, i) => make(100 * i));
  const crossEntropy = (logits, classes, labels) =>
    tf.losses.softmaxCrossEntropy(tf.oneHot(labels, classes), logits);

  /** Form of a training: each repetition begins with the first parameters. */
  function training(row, list, batches, lossOf) {
    let variables = {};
    let optimizer = null;
    const forget = () => {
      tf.dispose(variables);
      optimizer?.dispose();
    };
    return {
      eager: {
        before() {
          forget();
          variables = Object.fromEntries(list.map(({ name, shape, values }) => [name, tf.tensor(values, shape).variable()]));
          optimizer = tf.train.adam(row.lr, 0.9, 0.999, 1e-8);
        },
        unit: (i) =>
          tf.tidy(() => {
            const { value, grads } = tf.variableGrads(() => lossOf(variables, batches[i]), Object.values(variables));
            for (const variable of Object.values(variables)) variable.assign(tf.mul(variable, 1 - row.lr * row.decay));
            optimizer.applyGradients(grads);
            return value;
          }),
        left: () => Promise.all(row.watched.map((name) => variables[name].data())),
        after() {
          forget();
          tf.dispose(batches);
        },
      },
    };
  }

  return {
    train_mlp(row) {
      const [inputs, classes] = [row.widths[0], row.widths.at(-1)];
      const batches = several(row, (seed) => ({
        x: tf.tensor(uniform(row.batch * inputs, 30 + seed), [row.batch, inputs]),
        labels: tf.tensor1d(integers(row.batch, 31 + seed, classes), "int32"),
      }));
      const last = row.widths.length - 2;
      return training(row, mlpParameters(row), batches, (w, { x, labels }) => {
        for (let i = 0; i <= last; i++) {
          x = tf.add(tf.matMul(x, w[`${i}.weight`]), w[`${i}.bias`]);
          if (i < last) x = tf.relu(x);
        }
        return crossEntropy(x, classes, labels);
      });
    },
    train_gpt(row) {
      const { batch, tokens, vocabulary, layers } = row;
      const batches = several(row, (seed) => ({
        ids: tf.tensor2d(integers(batch * tokens, 32 + seed, vocabulary), [batch, tokens], "int32"),
        labels: tf.tensor1d(integers(batch * tokens, 33 + seed, vocabulary), "int32"),
      }));
      const mask = tf.tensor(
        Float32Array.from({ length: tokens * tokens }, (_, k) => (k % tokens > Math.floor(k / tokens) ? -1e9 : 0)),
        [tokens, tokens],
      );
      const forms = training(row, gptParameters(row), batches, (w, { ids, labels }) => {
        let x = tf.add(tf.gather(w.ids, ids), w.places);
        for (let i = 0; i < layers; i++) x = block(tf, x, w, `${i}.`, row, mask);
        x = tf.reshape(layerNorm(tf, x, w.gain, w.shift), [batch * tokens, row.d]);
        return crossEntropy(tf.matMul(x, w.head), vocabulary, labels);
      });
      const { after } = forms.eager;
      forms.eager.after = () => (after(), mask.dispose());
      return forms;
    },
  };
}
