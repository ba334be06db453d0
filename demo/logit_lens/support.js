/** What this page needs of a browser, and how to say that it is missing. */

const SHIPPING = [
  "Chrome and Edge 113 or newer on Windows, macOS and ChromeOS, 121 or newer on Android",
  "Safari 26 or newer on macOS, iOS and iPadOS",
  "Firefox 141 or newer on Windows, 145 or newer on Macs with Apple silicon",
];
const LINUX = "On Linux, Chrome may want WebGPU and Vulkan switched on under chrome://flags.";

/**
 * What keeps WebGPU from working on this page, or null.
 * @returns {Promise<{ title: string, text: string, list?: string[], after?: string } | null>}
 */
export async function missingOnPage() {
  if (!isSecureContext) {
    return {
      title: "WebGPU is hidden here",
      text: "Browsers offer it only on pages that come over https or from this computer. Open the page at an https address, or at 127.0.0.1.",
    };
  }
  if (!navigator.gpu) {
    return {
      title: "This browser has no WebGPU",
      text: "The model computes on the graphics processor, which a page reaches through WebGPU. Please open this page in one of these:",
      list: SHIPPING,
      after: LINUX,
    };
  }
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (adapter) return null;
  return {
    title: "WebGPU finds no graphics processor",
    text: "This browser has WebGPU, but it offers no adapter: the driver is missing or blocked, or hardware acceleration is switched off in the settings. Update the driver, switch acceleration on and restart the browser, or open the page in another one:",
    list: SHIPPING,
    after: LINUX,
  };
}

/** What keeps WebGPU from working inside the worker where Python runs, or null. */
export function missingInWorker(info) {
  if (info.webgpu) return null;
  return {
    title: "WebGPU is missing in workers",
    text: "This browser offers WebGPU to pages, but not to the worker in which Python runs, so that the page never freezes. Please open this page in one of these:",
    list: SHIPPING,
    after: LINUX,
  };
}

/** One line about the place: versions, and which optional features are there. */
export function describe(info) {
  const waits = info.jspi ? "JSPI available, not needed" : "JSPI missing, not needed: every value is awaited";
  const isolation = info.isolated ? "cross-origin isolated" : "not cross-origin isolated, not needed";
  return `Python ${info.python} on Pyodide ${info.pyodide}, started in ${(info.milliseconds / 1000).toFixed(1)} s; ${waits}; ${isolation}.`;
}

/** An address that holds elsewhere, too; a hub name stays. */
export function absolute(source) {
  return /^(\/|https?:)/.test(source) ? new URL(source, location.href).href : source;
}

/** What an address is called on the page: its last part, as people read it. */
export function lastName(source) {
  const name = source.split("/").findLast(Boolean) ?? source;
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // a % that begins no escape
  }
}

/** What to do about an error that Python raised; by the names of pellucid.errors. */
export const ADVICE = {
  SourceError: { title: "The model could not be fetched", text: "Or download the model and choose the file on this computer." },
  MissingFile: { title: "There is no such model", text: "Or choose a file on this computer. A name like HuggingFaceTB/SmolLM2-135M-Instruct is looked up on the hub." },
  FormatError: { title: "This file cannot be read as a model", text: "It must be a GGUF file or a folder with config.json and safetensors, of an architecture that Pellucid knows." },
  WeightError: { title: "The weights do not fit the model", text: "The configuration and the weights do not belong together. Try the original files." },
  OutOfMemoryError: { title: "The graphics processor is out of memory", text: "Close other pages that use it, shorten the prompt, or load a smaller or more strongly quantized model." },
  MemoryError: { title: "Python is out of memory", text: "Shorten the prompt, or reload the page." },
  DeviceError: { title: "The graphics processor stopped answering", text: "Load the model again. If it happens again, reload the page or restart the browser." },
  DimensionError: { title: "That is longer than the model can read", text: "The prompt and the new tokens share the model's positions." },
  PairError: { title: "These two cannot be compared", text: "Of prompts, a good pair differs in one word, and the model goes on with different ones." },
  LoadCancelled: { title: "Cancelled", text: "Nothing of the other model is kept." },
  CoderError: { title: "This is no sparse coder of the model", text: "It must be a file of safetensors or .npz of SAELens, Gemma Scope, dictionary_learning or sparsify, made for this model and this point." },
  ValueError: { title: "The prompt does not fit the model", text: "Change the prompt, or continue it as plain text instead of a chat." },
};
