// The networks of the comparison as lists of parameters { name, shape, values }; ours/models.py makes the same. Matrices are
// [inputs, outputs].

import { uniform } from "./data.js";

const size = (shape) => shape.reduce((a, b) => a * b, 1);

/** Matrices get uniform values by their place in the list, gains ones, other vectors zeros. */
function fill(list) {
  return list.map(([name, shape], place) => {
    if (shape.length > 1) return { name, shape, values: uniform(size(shape), 1000 + place, shape[0] ** -0.5) };
    return { name, shape, values: new Float32Array(size(shape)).fill(name.endsWith("gain") ? 1 : 0) };
  });
}

function blockList(prefix, { d, ff }) {
  const list = [
    ["gain", [d]], ["shift", [d]], ["q", [d, d]], ["k", [d, d]], ["v", [d, d]], ["o", [d, d]],
    ["ff_gain", [d]], ["ff_shift", [d]], ["up", [d, ff]], ["down", [ff, d]],
  ];
  return list.map(([name, shape]) => [prefix + name, shape]);
}

/** One block: normalise, attend, add; normalise, widen, GELU, narrow, add. */
export const blockParameters = (row) => fill(blockList("", row));

/** Linear layers with ReLU between them. */
export const mlpParameters = ({ widths }) =>
  fill(widths.slice(1).flatMap((width, i) => [[`${i}.weight`, [widths[i], width]], [`${i}.bias`, [width]]]));

/** Embeddings of ids and places, blocks with a causal mask, a norm, a head. */
export function gptParameters(row) {
  const { layers, d, tokens, vocabulary } = row;
  const blocks = Array.from({ length: layers }, (_, i) => blockList(`${i}.`, row)).flat();
  const ends = [["gain", [d]], ["shift", [d]], ["head", [d, vocabulary]]];
  return fill([["ids", [vocabulary, d]], ["places", [tokens, d]], ...blocks, ...ends]);
}
