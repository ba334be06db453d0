// Operands of the op rows, and which numbers of an output are compared. ours/ops.py has the same.

import { integers, permutation, places, uniform } from "./data.js";

// What stands for a number that is none, so that sums can be compared.
const [NAN, INFINITY, MINUS_INFINITY] = [3, 5, -7];

// How many results are held while further calls are queued: few, for they are large.
export const HELD = 8;

/** The numbers of the operands of benchmarks/ops.py for matrices of `side` rows; bools and indices have 32 bits. */
export function values(side) {
  const count = side * side;
  const k = permutation(count);
  return {
    x: uniform(count, 1, 0.4, 0.5),
    y: uniform(count, 2, 0.4, 0.5),
    i: integers(count, 3, 1_000_000),
    j: integers(count, 4, 16),
    b: integers(count, 5, 2),
    k,
    r: k.slice(0, side).map((index) => index % side),
    o: integers(count / 64, 6, 64),
    q: Float32Array.from({ length: 1000 }, (_, index) => index / 999),
    v: uniform(side, 7, 0.5, 0.5),
  };
}

/** The shapes of those that are no vectors. */
export const shapes = (side) => ({ m: [side, side], h: [side * side / (32 * (side / 32) ** 2), 32, side / 32, side / 32] });

/** Numbers that an expression may name beside the operands. */
export function constants(side, { i }) {
  return { side, count: side * side, top: i.reduce((a, b) => Math.max(a, b)) + 1 };
}

/** Those names that an expression has. */
export const named = (text, names) => names.filter((name) => new RegExp(`(?<![.\\w])${name}\\b(?! *:)`).test(text));

/** Of an output's numbers those that are compared; of indices what lies there in `x`. */
export function taken(numbers, { indexes, side }, x) {
  const at = places(numbers.length);
  return Float64Array.from(at, (place) => {
    let number = numbers[place];
    if (indexes === "all") number = x[number];
    if (indexes === "rows") number = x[place * side + number];
    if (indexes === "columns") number = x[number * side + place];
    if (Number.isNaN(number)) return NAN;
    if (number === Infinity) return INFINITY;
    return number === -Infinity ? MINUS_INFINITY : number;
  });
}
