/**
 * A model's modules as a tree, with the share of the weights that each has.
 *
 *   data      { name, modules: [{ path, type, parameters, bytes }] }   in order; the first is the model itself, with path ""
 *   selected  path of the module
 *
 * What is inside a module is drawn when that is opened.
 */
import { choose, follow } from "./model.js";
import { make } from "./parts.js";

const UNITS = ["B", "kB", "MB", "GB"];

function bytes(count) {
  const unit = Math.min(3, Math.floor(Math.log10(Math.max(count, 1)) / 3));
  return `${Number((count / 1000 ** unit).toPrecision(3))} ${UNITS[unit]}`;
}

function render({ model, el, signal }) {
  const box = make("div", { class: "pellucid model-map" });
  el.append(box);
  box.addEventListener("click", ({ target }) => {
    const row = target.closest("[data-path]");
    if (row) choose(model, row.dataset.path);
  }, { signal });
  return follow(model, (data) => {
    box.replaceChildren();
    if (!data?.modules.length) return;
    const whole = data.modules[0].bytes || 1;
    const known = new Set(data.modules.map(({ path }) => path));
    const inner = new Map(); // of each module, those directly inside it
    for (const one of data.modules.slice(1)) {
      let above = one.path;
      do above = above.includes(".") ? above.slice(0, above.lastIndexOf(".")) : "";
      while (!known.has(above));
      if (!inner.has(above)) inner.set(above, []);
      inner.get(above).push(one);
    }
    const draw = ({ path, type, parameters, bytes: size }) => {
      const name = path === "" ? (data.name ?? type) : path.split(".").at(-1);
      const row = [
        make("code", { class: "name" }, name),
        name === type ? "" : make("span", { class: "quiet" }, type),
        " ", // where a line may break
        make("span", { class: "size" }, `${parameters.toLocaleString("en")} · ${bytes(size)}`),
        make("i", { class: "share", style: `--share: ${((100 * size) / whole).toFixed(2)}%` }),
      ];
      if (!inner.has(path)) return make("div", { class: "leaf", "data-path": path }, ...row);
      const made = make("details", path === "" ? { open: "" } : {}, make("summary", { "data-path": path }, ...row));
      const fill = () => made.append(...inner.get(path).map(draw));
      if (made.open) fill();
      else made.addEventListener("toggle", fill, { once: true, signal });
      return made;
    };
    box.append(draw(data.modules[0]));
  }, signal);
}

export default { render };
