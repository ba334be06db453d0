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
    const plot = Plot.plot({
      width: Math.max(280, Math.min(el.clientWidth || 640, 760)),
      height: 300,
      marginLeft: 56,
      marginRight: 90,
      style: { background: "transparent", color: "inherit", fontFamily: "inherit", overflow: "visible" },
      x: { label: axis, tickFormat: (k) => (Number.isInteger(k) ? String(k) : "") },
      y: { label: data.measure, type: data.log ? "log" : "linear", reverse: Boolean(data.down), grid: true, nice: true },
      color: { scheme: "Observable10", legend: data.series.length > 1 },
      marks: [
        Plot.line(rows, { x: "layer", y: "value", stroke: "name", z: "name", strokeWidth: 2 }),
        Plot.dot(rows, { x: "layer", y: "value", fill: "name", z: "name", r: 2, tip: true }),
        Plot.text(rows, Plot.selectLast({ x: "layer", y: "value", z: "name", text: "name", textAnchor: "start", dx: 6, fill: "currentColor" })),
      ],
    });
    const ends = data.series.map(({ name, values }) => `${visible(name)} ${numbers(values).at(-1)}`);
    box.replaceChildren(picture(plot, `${data.measure} through ${data.points.length} ${axis}s; at the end: ${ends.join(", ")}`));
  }, signal);
}

export default { render };
