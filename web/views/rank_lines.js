/**
 * Numbers that go through the layers: ranks of tokens, probabilities, entropy, the distance to the end; or through steps.
 *
 *   data  { points: [label], series: [{ name, values: Float32Array }], measure, log, down, axis, each }
 *         log: the axis is logarithmic; down: small values are on top, as ranks are
 *         axis: what the points are, "layer" if not given; each: how many of these lie between two points, 1 if not given
 */
import { follow } from "./model.js";
import { make, numbers, visible } from "./parts.js";
import { picture, plots } from "./plots.js";

const GAP = 13; // pixels from label to label
const LONGEST = 14; // characters of a label

/**
 * Places at least `gap` apart between `low` and `high`, each as near to where it was as that allows (least squares, by pooling
 * adjacent violators).
 */
export function spread(places, gap, low, high) {
  const order = places.map((_, k) => k).sort((a, b) => places[a] - places[b]);
  const apart = Math.min(gap, (high - low) / Math.max(1, order.length - 1));
  const groups = []; // labels that touch: how many, and the sum of where each would have the first of all
  order.forEach((at, k) => {
    let group = { count: 1, sum: places[at] - k * apart };
    while (groups.length && groups.at(-1).sum / groups.at(-1).count >= group.sum / group.count) {
      const { count, sum } = groups.pop();
      group = { count: group.count + count, sum: group.sum + sum };
    }
    groups.push(group);
  });
  const firsts = groups.flatMap(({ count, sum }) => Array(count).fill(sum / count));
  const found = [];
  order.forEach((at, k) => (found[at] = Math.max(low, Math.min(high - (order.length - 1) * apart, firsts[k])) + k * apart));
  return found;
}

async function render({ model, el, signal }) {
  const Plot = await plots();
  const box = make("figure", { class: "pellucid plot" });
  el.append(box);
  return follow(model, (data) => {
    if (!data?.series.length) return box.replaceChildren();
    // A logarithm has no 0: a rank of 0, the likeliest, is drawn as 1.
    const shift = data.log && data.down ? 1 : 0;
    const axis = data.axis ?? "layer";
    const rows = data.series.flatMap(({ name, values }) =>
      [...numbers(values)].map((value, k) => ({ layer: (k + (data.axis ? 1 : 0)) * (data.each ?? 1), value: value + shift, name: visible(name) })),
    );
    const short = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);
    // What stands at the ends of lines that meet would lie on each other.
    const ends = (more) =>
      Plot.initializer(Plot.selectLast({ x: "layer", y: "value", z: "name", ...more }), (data, facets, { y }, scales, { height, marginTop, marginBottom }) => {
        const [shown] = facets;
        const places = spread(Array.from(shown, (k) => scales.y(y.value[k])), GAP, marginTop, height - marginBottom);
        const value = [];
        shown.forEach((k, at) => (value[k] = places[at]));
        return { data, facets, channels: { y: { value } } };
      });
    const plot = Plot.plot({
      width: Math.max(280, Math.min(el.clientWidth || 640, 760)),
      height: 300,
      marginLeft: 56,
      marginRight: 30 + 6 * Math.max(...rows.map(({ name }) => short(name).length)),
      style: { background: "transparent", color: "inherit", fontFamily: "inherit", overflow: "visible" },
      x: { label: axis, tickFormat: (k) => (Number.isInteger(k) ? String(k) : "") },
      y: { label: data.measure, type: data.log ? "log" : "linear", reverse: Boolean(data.down), grid: true, nice: true },
      color: { scheme: "Observable10", legend: data.series.length > 1 },
      marks: [
        Plot.line(rows, { x: "layer", y: "value", stroke: "name", z: "name", strokeWidth: 2 }),
        Plot.dot(rows, { x: "layer", y: "value", fill: "name", z: "name", r: 2, tip: true }),
        Plot.dot(rows, ends({ fill: "name", symbol: "square", r: 4, dx: 11 })),
        Plot.text(rows, ends({ text: (row) => short(row.name), textAnchor: "start", dx: 19, fill: "currentColor" })),
      ],
    });
    const told = data.series.map(({ name, values }) => `${visible(name)} ${numbers(values).at(-1)}`);
    box.replaceChildren(picture(plot, `${data.measure} through ${data.points.length} ${axis}s; at the end: ${told.join(", ")}`));
  }, signal);
}

export default { render };
