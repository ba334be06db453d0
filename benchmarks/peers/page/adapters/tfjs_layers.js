// What TensorFlow.js has no op for, composed as its users do.

/** Parameters of models.js as tensors by name. */
export const parameters = (tf, list) =>
  Object.fromEntries(list.map(({ name, shape, values }) => [name, tf.tensor(values, shape)]));

export function layerNorm(tf, x, gain, shift) {
  const centred = tf.sub(x, tf.mean(x, -1, true));
  const variance = tf.mean(tf.square(centred), -1, true);
  return tf.add(tf.mul(tf.mul(centred, tf.rsqrt(tf.add(variance, 1e-5))), gain), shift);
}

/**
 * The recurrence of Mamba, one position after another; all that does not depend on the state is computed at once.
 * u: [tokens, channels]; delta: [tokens, channels, 1]; a: [channels, states]; b, c: [tokens, 1, states].
 */
export function scan(tf, u, delta, a, b, c) {
  const factors = tf.unstack(tf.exp(tf.mul(delta, a)));
  const [first, ...added] = tf.unstack(tf.mul(tf.mul(delta, tf.expandDims(u, -1)), b));
  const states = [first];
  added.forEach((more, k) => states.push(tf.add(tf.mul(states[k], factors[k + 1]), more)));
  return tf.sum(tf.mul(tf.stack(states), c), -1);
}

function gelu(tf, x) {
  const inner = tf.mul(tf.add(x, tf.mul(tf.pow(x, 3), 0.044715)), Math.sqrt(2 / Math.PI));
  return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
}

/** x @ w for x of any number of axes. */
function linear(tf, x, w) {
  const flat = tf.matMul(tf.reshape(x, [-1, w.shape[0]]), w);
  return tf.reshape(flat, [...x.shape.slice(0, -1), w.shape[1]]);
}

/** x: [..., tokens, d]; `mask` is added to the scores. */
export function block(tf, x, w, prefix, { d, heads }, mask) {
  const of = (name) => w[prefix + name];
  const lead = x.shape.slice(0, -1);
  const axes = lead.length === 2 ? [0, 2, 1, 3] : [1, 0, 2];
  const split = (t) => tf.transpose(tf.reshape(t, [...lead, heads, d / heads]), axes);
  const h = layerNorm(tf, x, of("gain"), of("shift"));
  const [q, k, v] = ["q", "k", "v"].map((name) => split(linear(tf, h, of(name))));
  let scores = tf.mul(tf.matMul(q, k, false, true), (d / heads) ** -0.5);
  if (mask) scores = tf.add(scores, mask);
  const mixed = tf.reshape(tf.transpose(tf.matMul(tf.softmax(scores), v), axes), x.shape);
  const y = tf.add(x, linear(tf, mixed, of("o")));
  const wide = gelu(tf, linear(tf, layerNorm(tf, y, of("ff_gain"), of("ff_shift")), of("up")));
  return tf.add(y, linear(tf, wide, of("down")));
}
