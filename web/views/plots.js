/** Observable Plot, loaded when the first plot is drawn; a host without modules beside this one sets `pellucidPlot`. */
let loading = null;

export function plots() {
  loading ??= globalThis.pellucidPlot ? globalThis.pellucidPlot() : load();
  return loading;
}

async function load() {
  await import(new URL("../../npm/d3.js", import.meta.url).href); // both put themselves into globalThis
  await import(new URL("../../npm/plot.js", import.meta.url).href);
  return globalThis.Plot;
}
