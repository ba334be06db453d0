/** Types of pellucid.js, whose header has an example. */

export interface StartOptions {
  /** Address of the built site, where Pyodide and the wheels are. Default: `<meta name="pellucid-site">`, or the folder above. */
  site?: string;
  onProgress?(progress: { stage: "runtime" | "packages" | "ready"; milliseconds: number }): void;
}

export interface Info {
  pyodide: string;
  python: string;
  /** Whether blocking reads such as `tensor.item()` work; without it their `_async` twins do. */
  jspi: boolean;
  webgpu: boolean;
  isolated: boolean;
  loaded: string[];
  milliseconds: number;
}

/** An exception of Python: `type` is its class name, `message` the traceback. */
export class PythonError extends Error {
  constructor(type: string, message: string);
  readonly type: string;
}

/** A call after `terminate`, or one that it cut off: also of a model that went with its Python. */
export class TerminatedError extends Error {}

/** Start Python now rather than at the first call, or again after `terminate`. */
export function start(options?: StartOptions): Promise<Info>;

/** The value of a program's last expression: dictionaries as objects, buffers as typed arrays, None as null. */
export function run(code: string, inputs?: Record<string, unknown>, options?: { onPrint?(text: string): void }): Promise<any>;

/** End Python with all models. What is under way and what is called later rejects with TerminatedError, until `start`. */
export function terminate(): Promise<void>;

export interface Progress {
  done: number;
  total: number;
  /** Bytes per second. */
  rate: number;
  /** Seconds, or null while that is not known. */
  remaining: number | null;
}

export interface LoadOptions {
  onProgress?(progress: Progress): void;
  /** Ends the wait of this call; the load goes on where others of the page wait for the same model. */
  signal?: AbortSignal;
  /** Keep a copy in the browser, so that the next visit asks the server for nothing: of calls for one model the first decides. */
  keep?: boolean;
}

/** Load a model once: an address, a path, a hub id or a file. */
export function load(source: string | File, options?: LoadOptions): Promise<Model>;

/** What is changed in a run: the JSON of a `pellucid.lens.Plan`. */
export interface Plan {
  patch?: Change[];
  steer?: Change[];
  ablate?: Change[];
}

export interface Change {
  point: string;
  method: string;
  [name: string]: unknown;
}

/** Settings of `generate`, by the names that they have in transformers. */
export interface StreamOptions {
  max_new_tokens?: number;
  do_sample?: boolean;
  temperature?: number;
  top_k?: number;
  top_p?: number;
  repetition_penalty?: number;
  seed?: number;
  /** The prompt is a user's message to a chat model. */
  chat?: boolean;
  plan?: Plan | null;
  /** Cuts the stream, which then throws the signal's reason: an AbortError. */
  signal?: AbortSignal;
}

export interface Token {
  /** null where the text ends within a character, whose beginning is then the last `text`. */
  id: number | null;
  /** The token's own text. */
  token: string;
  /** What became readable with it: characters may take several tokens. */
  text: string;
}

export interface LookOptions {
  /** Points: `resid_post.3`, `attn_probs`, `z.*`. */
  capture?: string[];
  lens?: { points?: string | string[]; top_k?: number; position?: number } | null;
  plan?: Plan;
  chat?: boolean;
}

export interface Numbers {
  shape: number[];
  data: Float32Array;
}

export interface Look {
  ids: Int32Array;
  tokens: string[];
  /** By address. */
  values: Record<string, Numbers>;
  /** Likeliest first: entry `(layer * positions + position) * top_k + k`. */
  lens: { points: string[]; positions: number; top_k: number; ids: Int32Array; probabilities: Float32Array } | null;
}

export interface Model {
  readonly source: string;
  readonly layers: number;
  readonly positions: number;
  /** Of the weights on the device. */
  readonly bytes: number;
  readonly chat: boolean;
  readonly device: string;
  /** Addresses that can be captured and changed. */
  readonly points: string[];
  stream(prompt: string | number[], options?: StreamOptions): AsyncGenerator<Token, void, void>;
  look(prompt: string | number[], options?: LookOptions): Promise<Look>;
  tokenize(text: string): Promise<{ ids: Int32Array; tokens: string[] }>;
  release(): Promise<void>;
}
