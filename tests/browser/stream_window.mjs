// What the cases of the stream share: a window being written, a few integer kernels, checks.

import { ALLOC, CODE_BITS, COPY, FREE, RUN, UPLOAD } from "/web/runtime/commands.js";
import { Stream } from "/web/runtime/stream.js";

/** Records in the order of the calls. */
export class Window {
  constructor() {
    this.words = [];
  }

  run(launch, slots, patches = []) {
    this.words.push((launch << CODE_BITS) | RUN, ...slots, ...patches);
    return this;
  }

  alloc(slot, nbytes) {
    this.words.push((slot << CODE_BITS) | ALLOC, nbytes);
    return this;
  }

  free(slot) {
    this.words.push((slot << CODE_BITS) | FREE);
    return this;
  }

  upload(slot, offset, words) {
    this.words.push((slot << CODE_BITS) | UPLOAD, offset, words.length * 4, ...words);
    return this;
  }

  copy(source, target, sourceOffset, targetOffset, nbytes) {
    this.words.push((source << CODE_BITS) | COPY, target, sourceOffset, targetOffset, nbytes);
    return this;
  }

  submit(stream, held = false) {
    stream.submit(Uint32Array.from(this.words), held);
    this.words = [];
  }
}

const HEADER = (immediate, names) => `
struct Params { n: u32, m: u32, c: u32 }
${immediate ? "var<immediate> params: Params;" : "@group(1) @binding(0) var<uniform> params: Params;"}
${names.map(([name, mode], i) => `@group(0) @binding(${i}) var<storage, ${mode}> ${name}: array<u32>;`).join("\n")}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= params.n) { return; }
`;

/** The text of a kernel over `n` words: its bindings, [name, mode] each, and what it does for word `i`. */
export function source(immediate, names, body) {
  return `${HEADER(immediate, names)}${body}\n}`;
}

/** Kernels on u32 words, with exact models: fill, join (two inputs), step (in place), mark (status). */
export function kernels(stream, immediate) {
  const make = (label, bindings, names, body) =>
    stream.pipeline(source(immediate, names, body), bindings, 12, immediate, label);
  return {
    fill: make("fill", "w", [["out", "read_write"]], "out[i] = i * params.m + params.c;"),
    join: make(
      "join",
      "rrw",
      [
        ["a", "read"],
        ["b", "read"],
        ["out", "read_write"],
      ],
      "out[i] = a[i] * params.m + b[i] + params.c;",
    ),
    step: make("step", "w", [["x", "read_write"]], "x[i] = x[i] * params.m + params.c;"),
    mark: make("mark", "w", [["status", "read_write"]], "status[i] = select(params.c, params.m, i == 0u);"),
  };
}

/** A launch over `n` words whose m and c come with each run. */
export function over(stream, pipeline, n) {
  const params = new Uint8Array(Uint32Array.of(n, 0, 0).buffer);
  return stream.launch(pipeline, params, [1, 2], Math.max(1, Math.ceil(n / 64)), 1, 1);
}

/** The words of a slot. */
export async function words(stream, slot, count, offset = 0) {
  const { bytes } = await stream.read(slot, offset * 4, count * 4);
  return new Uint32Array(bytes.buffer);
}

export function equal(found, expected, what) {
  const a = JSON.stringify(Array.isArray(found) || ArrayBuffer.isView(found) ? [...found] : found);
  const b = JSON.stringify(
    Array.isArray(expected) || ArrayBuffer.isView(expected) ? [...expected] : expected,
  );
  if (a !== b) throw new Error(`${what}: found ${a.slice(0, 200)}, expected ${b.slice(0, 200)}`);
}

export function matches(text, pattern, what) {
  if (!pattern.test(text ?? ""))
    throw new Error(`${what}: ${JSON.stringify(text)} does not match ${pattern}`);
}

export async function fails(action, pattern, what) {
  try {
    await action();
  } catch (error) {
    matches(error.message, pattern, what);
    return;
  }
  throw new Error(`${what}: nothing was thrown`);
}

/** Repeatable random numbers (mulberry32): `below(n)` is an integer in [0, n). */
export function random(seed) {
  let state = seed >>> 0;
  return function below(n) {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

/** One case by name: opens its stream, runs it, closes it. */
export async function runCase(module, name, defaultLimits) {
  const cases = await import(module);
  const stream = await Stream.open({ defaultLimits });
  try {
    await cases[name](stream, !defaultLimits);
  } finally {
    stream.close();
  }
}
