// The layers of the comparison's networks in jax-js. Functions consume their arguments, as the library's own do.

/** Parameters of models.js as arrays by name; "0.gain" becomes { 0: { gain } }. */
export function parameters(np, list) {
  const made = {};
  for (const { name, shape, values } of list) {
    const path = name.split(".");
    const last = path.pop();
    const group = path.reduce((group, key) => (group[key] ??= {}), made);
    group[last] = np.array(values).reshape(shape);
  }
  return made;
}

export const layerNorm = (nn, x, gain, shift) => nn.standardize(x, -1).mul(gain).add(shift);

/** x: [batch, tokens, d]. */
export function block({ numpy: np, nn }, x, w, { d, heads }, isCausal) {
  const [batch, tokens] = x.shape;
  const split = (t) => t.reshape([batch, tokens, heads, d / heads]);
  const h = layerNorm(nn, x.ref, w.gain, w.shift);
  const q = split(np.matmul(h.ref, w.q));
  const k = split(np.matmul(h.ref, w.k));
  const v = split(np.matmul(h, w.v));
  const mixed = nn.dotProductAttention(q, k, v, { isCausal }).reshape([batch, tokens, d]);
  const y = x.add(np.matmul(mixed, w.o));
  const wide = nn.gelu(np.matmul(layerNorm(nn, y.ref, w.ff_gain, w.ff_shift), w.up));
  return y.add(np.matmul(wide, w.down));
}
