// Inputs, samples and checksums. ours/data.py computes the same numbers, so that libraries can be compared bit by bit at the input
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

// How far the input of a unit lies behind that of the unit before in the sequence that both are cut from.
const STEP = 4099;

/**
 * Inputs of n floats for several units: a function of the unit's number. They are parts of one sequence, each beginning
 * further on than the one before, for it takes long to make hundreds of large inputs from nothing.
 */
export function series(units, n, seed, scale = 1, offset = 0) {
  const sequence = uniform(n + (units - 1) * STEP, seed, scale, offset);
  return (i) => sequence.slice(i * STEP, i * STEP + n);
}

/**
 * Which of k outputs are compared: so many by chance, in order; all if there are no more. Half are among the first `shared`,
 * which every library has; of the others those come first that come first for another k, too.
 */
export function sample(k, checked, seed, shared = k) {
  const units = Array.from({ length: k }, (_, i) => i);
  if (k <= checked) return units;
  const salt = Math.imul(seed + 1, 0x9e3779b9);
  const keys = units.map((i) => bits((i + salt) | 0));
  units.sort((a, b) => keys[a] - keys[b] || a - b);
  const near = units.filter((i) => i < shared).slice(0, checked >> 1);
  const others = units.filter((i) => !near.includes(i)).slice(0, checked - near.length);
  return [...near, ...others].sort((a, b) => a - b);
}

/** The integers of [0, n) in an order that a function of their index gives: a bijection of the next power of two, cut off. */
export function permutation(n) {
  let width = 1;
  while (1 << width < n) width++;
  const [mask, half] = [(1 << width) - 1, (width + 1) >> 1];
  const order = new Int32Array(n);
  for (let i = 0, filled = 0; filled < n; i++) {
    let x = i;
    for (const factor of FACTORS) {
      x ^= x >>> half;
      x = Math.imul(x, factor) & mask;
    }
    x ^= x >>> half;
    if (x < n) order[filled++] = x;
  }
  return order;
}

const FACTORS = [0x9e3779b1, 0x85ebca6b, 0xc2b2ae35];

// So many places at either end of a large output are compared, and so many in all.
const ENDS = 64;
const PLACES = 4096;

/** Which of n numbers are compared: all, or those at both ends and others by chance, a function of n. */
export function places(n) {
  if (n <= PLACES) return Int32Array.from({ length: n }, (_, i) => i);
  return Int32Array.from({ length: PLACES }, (_, i) => {
    if (i < ENDS) return i;
    if (i >= PLACES - ENDS) return n - PLACES + i;
    return Math.floor((bits(i) * n) / (1 << 24));
  });
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
