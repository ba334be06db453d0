// Inputs and checksums. ours.py computes the same numbers, so that libraries can be compared bit by bit at the input
// and by their sums at the output.

/** n floats of [offset - scale, offset + scale), a function of their index and the seed. */
export function uniform(n, seed, scale = 1, offset = 0) {
  const values = new Float32Array(n);
  const salt = Math.imul(seed, 0x9e3779b9);
  for (let i = 0; i < n; i++) values[i] = offset + scale * fraction((i + salt) | 0);
  return values;
}

/** n integers of [0, limit), likewise. */
export function integers(n, seed, limit) {
  const values = new Int32Array(n);
  const salt = Math.imul(seed, 0x9e3779b9);
  for (let i = 0; i < n; i++) values[i] = bits((i + salt) | 0) % limit;
  return values;
}

/** 24 bits; every input bit reaches each of them by two rounds of shift and multiply. */
function bits(x) {
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 8;
}

const fraction = (x) => bits(x) / (1 << 23) - 1;

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
    weighted += value * fraction(i);
  }
  return [magnitudes, Math.sqrt(squares), weighted];
}
