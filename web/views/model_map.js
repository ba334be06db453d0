/**
 * A model's modules as a tree, with the share of the weights that each has.
 *
 *   data      { name, modules: [{ path, type, parameters, bytes }] }   in order; the first is the model itself, with path ""
 *   selected  path of the module
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
    const places = new Map();
    for (const { path, type, parameters, bytes: size } of data.modules) {
      const name = path === "" ? (data.name ?? type) : path.split(".").at(-1);
      const row = [
        make("code", { class: "name" }, name),
        make("span", { class: "quiet" }, type),
        make("span", { class: "size" }, `${parameters.toLocaleString("en")} · ${bytes(size)}`),
        make("i", { class: "share", style: `--share: ${((100 * size) / whole).toFixed(2)}%` }),
      ];
      const inner = data.modules.some((other) => other.path !== path && other.path.startsWith(path === "" ? "" : `${path}.`));
      const made = inner
        ? make("details", path === "" ? { open: "" } : {}, make("summary", { "data-path": path }, ...row))
        : make("div", { class: "leaf", "data-path": path }, ...row);
      const above = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "";
      (path === "" ? box : (places.get(above) ?? box)).append(made);
      places.set(path, made);
    }
  }, signal);
}

export default { render };
