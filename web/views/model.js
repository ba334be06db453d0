/**
 * What a view talks to: the model of the anywidget contract, for hosts that are no notebook.
 *
 * A view is a module whose default export has `render({ model, el, signal })`. It reads `model.get("data")`, draws into `el`,
 * draws again at `change:data`, and tells what a person chose by `model.set("selected", ...)` and `model.save_changes()`.
 * Data are plain JSON; long rows of numbers are typed arrays, or DataViews of little-endian float32 as notebooks send them.
 *
 *   const model = new Model({ data });
 *   const end = await show(view, element, model);
 *   model.set("data", other);                        // drawn anew
 *   model.on("change:selected", () => model.get("selected"));
 *   end();
 */
export class Model {
  #values;
  #listeners = new Map();

  constructor(values = {}) {
    this.#values = { selected: null, ...values };
  }

  get(name) {
    return this.#values[name];
  }

  set(name, value) {
    if (this.#values[name] === value) return;
    this.#values[name] = value;
    this.#tell(`change:${name}`);
  }

  /** In a notebook this is when the kernel learns of what was set; here everybody has. */
  save_changes() {}

  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
    this.#listeners.get(event).add(listener);
  }

  off(event, listener) {
    if (listener) this.#listeners.get(event)?.delete(listener);
    else if (event) this.#listeners.delete(event);
    else this.#listeners.clear();
  }

  #tell(event) {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) listener();
  }
}

/** Draw a view into an element; what comes back ends it. */
export async function show(view, el, model) {
  const controller = new AbortController();
  const { signal } = controller;
  const endings = [await view.initialize?.({ model, signal }), await view.render({ model, el, signal })];
  return () => {
    controller.abort();
    for (const end of endings) end?.();
    el.replaceChildren();
  };
}

/** Draw now and at every change of the data, until the view ends: at most once a frame. */
export function follow(model, draw, signal) {
  let frame = 0;
  const later = () => (frame ||= requestAnimationFrame(() => ((frame = 0), signal?.aborted || draw(model.get("data")))));
  model.on("change:data", later);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", later, { signal });
  draw(model.get("data"));
  return () => {
    cancelAnimationFrame(frame);
    model.off("change:data", later);
    scheme.removeEventListener("change", later);
  };
}

/** Tell what a person chose. */
export function choose(model, value) {
  if (model.get("selected") === value) model.set("selected", null); // chosen again
  model.set("selected", value);
  model.save_changes();
}
