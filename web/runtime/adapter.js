// Finds the adapter and opens the device.

const ASK_AGAIN_MS = [50, 100, 200, 400, 600, 800];
const FEATURES = ["subgroups", "shader-f16", "timestamp-query"];
// Of the shading language, which need not be asked for.
const LANGUAGE_FEATURES = ["packed_4x8_integer_dot_product"];
const IMMEDIATE_BYTES = 64;

/**
 * Open a device with everything the adapter offers, or, with `defaultLimits`, with WebGPU's defaults and no feature.
 * Resolves to { device, info }; info is plain data.
 */
export async function openDevice(defaultLimits) {
  const gpu = globalThis.navigator?.gpu;
  if (gpu === undefined) {
    const why =
      globalThis.isSecureContext === false ? " WebGPU needs a secure context: https, or localhost." : "";
    throw new Error(`this browser or page has no WebGPU (navigator.gpu is undefined).${why}`);
  }
  const adapter = await findAdapter(gpu);
  const limits = {};
  for (const name in adapter.limits) {
    if (typeof adapter.limits[name] === "number") limits[name] = adapter.limits[name];
  }
  const features = FEATURES.filter((name) => adapter.features.has(name));
  const language = LANGUAGE_FEATURES.filter((name) => gpu.wgslLanguageFeatures?.has(name));
  const device = await adapter.requestDevice(
    defaultLimits
      ? { label: "pellucid" }
      : { label: "pellucid", requiredLimits: limits, requiredFeatures: features },
  );
  const granted = {};
  for (const name in limits) granted[name] = device.limits[name];
  const { vendor = "", architecture = "", description = "", device: model = "" } = adapter.info ?? {};
  const info = {
    host: "browser",
    vendor,
    architecture,
    description: description || model,
    features: defaultLimits ? [] : [...features, ...language],
    limits: granted,
    immediates: defaultLimits ? 0 : immediateBytes(gpu, granted),
    version: browserVersion(),
  };
  return { device, info };
}

async function findAdapter(gpu) {
  // On machines with a GPU the answer can be null until the GPU process has started.
  for (const pause of [...ASK_AGAIN_MS, 0]) {
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    if (adapter !== null) return adapter;
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
  }
  throw new Error("WebGPU is there, but it found no adapter (requestAdapter answered null).");
}

/** Name and major version of the browser, by which measurements are kept; empty where it does not say. */
function browserVersion() {
  const found = /(Firefox|Chrome|Version)\/(\d+)/.exec(globalThis.navigator?.userAgent ?? "");
  return found === null ? "" : `${found[1].replace("Version", "Safari")} ${found[2]}`;
}

/** Bytes of immediates that a pipeline may have; 0 when the browser lacks any part of them. */
function immediateBytes(gpu, limits) {
  const language = gpu.wgslLanguageFeatures?.has("immediate_address_space") ?? false;
  const method = typeof GPUComputePassEncoder.prototype.setImmediates === "function";
  return language && method ? (limits.maxImmediateSize ?? IMMEDIATE_BYTES) : 0;
}
