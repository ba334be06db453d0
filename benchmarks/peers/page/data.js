// Inputs and checksums. ours.py computes the same numbers, so that libraries can be compared bit by bit at the input
// and by their sums at the output.

/** n floats of [-scale, scale), a function of their index and the seed. */
export function uniform(n, seed, scale = 1) {
  const values = new Float32Array(n);
  const salt = Math.imul(seed, 0x9e3779b9);
  for (let i = 0; i < n; i++) values[i] = scale * ((scramble((i + salt) | 0) >>> 8) / (1 << 23) - 1);
  return values;
}

/** n integers of [0, limit), likewise. */
export function integers(n, seed, limit) {
  const values = new Int32Array(n);
  const salt = Math.imul(seed, 0x9e3779b9);
  for (let i = 0; i < n; i++) values[i] = (scramble((i + salt) | 0) >>> 8) % limit;
  return values;
}

/** Every input bit reaches every output bit: two rounds of shift and multiply. */
function scramble(x) {
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return x ^ (x >>> 16);
}

/**
 * [sum of magnitudes, Euclidean norm, weighted sum] of an output, in float64. The weights differ from element to element, so
 * an output in another order has another sum.
 */
export function checksum(values) {
  let magnitudes = 0;
  let squares = 0;
  let weighted = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    magnitudes += Math.abs(value);
    squares += value * value;
    weighted += value * ((scramble(i) >>> 8) / (1 << 23) - 1);
  }
  return [magnitudes, Math.sqrt(squares), weighted];
}
