/** What to do about an error that Python raised; by the names of pellucid.errors. */
export const ADVICE = {
  SourceError: { title: "The model could not be fetched", text: "Or download the model and choose the file on this computer." },
  MissingFile: { title: "There is no such model", text: "Or choose a file on this computer. A name like HuggingFaceTB/SmolLM2-135M-Instruct is looked up on the hub." },
  FormatError: { title: "This file cannot be read as a model", text: "It must be a GGUF file or a folder with config.json and safetensors, of an architecture that Pellucid knows." },
  WeightError: { title: "The weights do not fit the model", text: "The configuration and the weights do not belong together. Where copies of them are kept in this browser, remove these and load again; else try the original files." },
  OutOfMemoryError: { title: "The graphics processor is out of memory", text: "Close other pages that use it, shorten the prompt, or load a smaller or more strongly quantized model." },
  MemoryError: { title: "Python is out of memory", text: "Shorten the prompt, or reload the page." },
  DeviceError: { title: "The graphics processor stopped answering", text: "Load the model again. If it happens again, reload the page or restart the browser." },
  // A device that is there, and is asked for too much at once.
  LimitError: { title: "The graphics processor cannot do that", text: "Ask for less at once: a shorter prompt, fewer heads or layers, or a smaller model." },
  DimensionError: { title: "That is longer than the model can read", text: "The prompt and the new tokens share the model's positions." },
  PromptError: { title: "There is nothing to read", text: "Type a prompt first." },
  PairError: { title: "These two cannot be compared", text: "Of prompts, a good pair differs in one word, and the model goes on with different ones." },
  LoadCancelled: { title: "Cancelled", text: "Nothing of the other model is kept." },
  CoderError: { title: "This is no sparse coder of the model", text: "It must be a file of safetensors or .npz of SAELens, Gemma Scope, dictionary_learning or sparsify, made for this model and this point." },
  ValueError: { title: "The prompt does not fit the model", text: "Change the prompt, or continue it as plain text instead of a chat." },
};

/** Whether an error says that the device is gone, with all that was on it. */
export function isLoss(error) {
  return error.type === "DeviceError" && error.message.includes("webgpu.reset()");
}

const WAITING = { title: "Python cannot wait for the device here", text: "Await the value instead, in the program itself: x = await x.numpy_async()." };

/** The advice for an error: a device that refuses something is not one that is gone. */
export function adviceOn(error) {
  if (error.type === "DeviceError" && error.message.includes("cannot wait here")) return { ...ADVICE, DeviceError: WAITING };
  return error.type === "DeviceError" && !isLoss(error) ? { ...ADVICE, DeviceError: ADVICE.LimitError } : ADVICE;
}
