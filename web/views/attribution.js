/**
 * Shares of a number as bars, largest first: who writes a logit, which token matters.
 *
 *   data  { names: [label], values: Float32Array, measure, count: how many are shown, ordered: keep the order }
 */
import { choose, follow } from "./model.js";
import { make, numbers, short, visible } from "./parts.js";
import { picture, plots } from "./plots.js";

async function render({ model, el, signal }) {
  const Plot = await plots();
  const box = make("figure", { class: "pellucid plot" });
  el.append(box);
  return follow(model, (data) => {
    if (!data?.names.length) return box.replaceChildren();
    const values = numbers(data.values);
    let rows = data.names.map((name, k) => ({ name: data.ordered ? `${k} ${visible(name)}` : visible(name), value: values[k], k }));
    if (!data.ordered) rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    rows = rows.slice(0, data.count ?? 20);
    const signed = rows.some(({ value }) => value < 0);
    const longest = Math.max(...rows.map((row) => row.name.length));
    const plot = Plot.plot({
      width: Math.max(280, Math.min(el.clientWidth || 640, 760)),
      height: 40 + 20 * rows.length,
      marginLeft: Math.min(180, 16 + 7 * longest),
      marginRight: 50,
      style: { background: "transparent", color: "inherit", fontFamily: "inherit" },
      x: { label: data.measure, grid: true, nice: true, insetLeft: signed ? 44 : 0 }, // room for what stands left of a bar
      y: { label: null, domain: rows.map((row) => row.name) },
      marks: [
        Plot.barX(rows, { x: "value", y: "name", fill: (row) => (row.value < 0 ? "var(--cool)" : "var(--heat)") }),
        Plot.text(rows, { x: "value", y: "name", text: (row) => short(row.value), textAnchor: "start", dx: 4, filter: (row) => row.value >= 0 }),
        Plot.text(rows, { x: "value", y: "name", text: (row) => short(row.value), textAnchor: "end", dx: -4, filter: (row) => row.value < 0 }),
        Plot.ruleX([0]),
      ],
    });
    plot.addEventListener("click", ({ target }) => {
      const bars = [...plot.querySelectorAll('[data-mark="bar"] rect')];
      if (bars.includes(target)) choose(model, { name: data.names[rows[bars.indexOf(target)].k], value: rows[bars.indexOf(target)].value });
    });
    box.replaceChildren(picture(plot, `${data.measure}: ${rows.slice(0, 5).map((row) => `${row.name} ${short(row.value)}`).join(", ")}`));
  }, signal);
}

export default { render };
