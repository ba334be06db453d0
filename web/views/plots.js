/** Observable Plot, loaded when the first plot is drawn; a host without modules beside this one sets `pellucidPlot`. */
let loading = null;

export function plots() {
  loading ??= globalThis.pellucidPlot ? globalThis.pellucidPlot() : load();
  return loading;
}

/** Make a plot one picture for who hears it, with a sentence for all of it: Plot labels groups, which may have no labels. */
export function picture(plot, sentence) {
  for (const group of plot.querySelectorAll("g[aria-label]")) {
    group.dataset.mark = group.getAttribute("aria-label");
    group.removeAttribute("aria-label");
  }
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", sentence);
  return plot;
}

async function load() {
  await import(new URL("../../npm/d3.js", import.meta.url).href); // both put themselves into globalThis
  await import(new URL("../../npm/plot.js", import.meta.url).href);
  return globalThis.Plot;
}
