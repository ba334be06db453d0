// The worker of one library: a classic one, for some are scripts and not modules. Messages: { id, method, options } in,
// { id, value } or { id, error } out; the first method is "open".

let measure = null;

async function open({ adapter, ...options }) {
  const { trap } = await import("./trap.js");
  trap();
  const [{ Measure }, { open }] = await Promise.all([import("./measure.js"), import(`./adapters/${adapter}.js`)]);
  const began = performance.now();
  const library = await open(options);
  measure = new Measure(library);
  return { version: options.version, device: library.device ?? null, open_ms: performance.now() - began };
}

onmessage = async ({ data: { id, method, options } }) => {
  try {
    const value = method === "open" ? await open(options[0]) : await measure[method](...options);
    postMessage({ id, value });
  } catch (error) {
    postMessage({ id, error: String(error?.message ?? error).slice(0, 600) });
  }
};
