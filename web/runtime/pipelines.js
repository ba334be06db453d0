// Compute pipelines with explicit layouts: group 0 holds the storage bindings, group 1 the parameter arena.

import { ARENA_BYTES } from "./arena.js";
import { shortened } from "./shorten.js";

const ARENA_STEP = 256;
// Compact forms are replaced when no pipeline was asked for so long, this many at a time: a driver has few threads, and
// the thread that reads their texts submits windows, too.
const QUIET_MS = 200;
const BESIDE = 1;
// Characters below which a text is compiled as it is: to look for what it does not run takes longer than to read it.
const SHORT = 5000;

/** Bytes that one launch takes in the arena: dynamic offsets are multiples of 256. */
function arenaBytes(paramsBytes) {
  return Math.ceil(paramsBytes / ARENA_STEP) * ARENA_STEP;
}

/** Makes pipelines, once per distinct (source, bindings, parameters), and keeps the layouts they share. */
export class Pipelines {
  constructor(device, faults, info) {
    this.device = device;
    this.faults = faults;
    this.mostImmediate = info.immediates;
    this.mostUniform = Math.min(ARENA_BYTES, info.limits.maxUniformBufferBindingSize);
    this.layouts = new Map();
    this.arenaLayouts = new Map();
    this.pipelineLayouts = new Map();
    this.made = []; // undefined where one ended
    this.unused = []; // the ids of those
    this.count = 0; // of all that were ever made
    this.ids = new Map();
    this.warming = new Map();
    this.compiling = 0; // of those that are compiled beside other work
    this.compact = []; // functions that replace what runs in a compact form by its full form
    this.replacing = 0;
    this.timer = null;
  }

  /** Pipelines that are being compiled, those that will replace compact forms included. */
  get pending() {
    return this.compiling + this.compact.length + this.replacing;
  }

  /** Id of the pipeline; created at once, its errors come later. */
  create(source, bindings, paramsBytes, immediate, label) {
    const key = keyOf(source, bindings, paramsBytes, immediate);
    const known = this.ids.get(key);
    if (known !== undefined) return known;
    const pipeline = this.#describe(bindings, paramsBytes, immediate, label);
    this.faults.open("validation");
    const module = this.#module(label, source);
    pipeline.gpu = this.device.createComputePipeline(this.#descriptor(pipeline, module));
    this.faults.close(async (message) => (pipeline.broken = await explain(label, message, module, source)));
    return this.#keep(key, pipeline);
  }

  /** The same without stalling the GPU process; resolves to the id. For pipelines that will be needed soon. */
  warm(source, bindings, paramsBytes, immediate, label) {
    const key = keyOf(source, bindings, paramsBytes, immediate);
    const known = this.ids.get(key) ?? this.warming.get(key);
    if (known !== undefined) return Promise.resolve(known);
    const warming = this.#warm(key, source, bindings, paramsBytes, immediate, label);
    this.warming.set(key, warming);
    return warming.finally(() => this.warming.delete(key));
  }

  /**
   * Id of a pipeline that is compiled beside other work: windows wait for it (`Backlog`).
   * `compact`: a source with the same results that compiles sooner and runs slower. It serves first; "" if none.
   */
  later(source, bindings, paramsBytes, immediate, label, compact = "") {
    const key = keyOf(source, bindings, paramsBytes, immediate);
    const known = this.ids.get(key);
    if (known !== undefined) return known;
    const pipeline = this.#describe(bindings, paramsBytes, immediate, label);
    const code = compact || source;
    const described = async (message) => (pipeline.broken = await explain(label, message, module, code));
    this.faults.open("validation");
    const module = this.#module(label, code);
    const isKnown = this.faults.close(described);
    // For whoever cannot wait; and where the other way failed, to hear why.
    pipeline.finish = () => {
      this.faults.open("validation");
      pipeline.gpu = this.device.createComputePipeline(this.#descriptor(pipeline, module));
      this.faults.close(described);
    };
    this.compiling++;
    pipeline.compiled = this.device
      .createComputePipelineAsync(this.#descriptor(pipeline, module))
      .then(
        (gpu) => (pipeline.gpu ??= gpu),
        () => isKnown, // of a text that is broken nothing is made again
      )
      .then(() => {
        pipeline.compiled = null;
        this.compiling--;
        this.#whenQuiet();
      });
    if (compact) this.compact.push(async () => this.#replace(pipeline, source));
    this.#whenQuiet();
    return this.#keep(key, pipeline);
  }

  /** End pipelines that no launch uses; their ids are given out again. */
  forget(ids) {
    for (const id of ids) {
      const pipeline = this.made[id];
      if (pipeline === undefined) continue;
      this.made[id] = undefined;
      this.unused.push(id);
      this.ids.delete(pipeline.key);
    }
  }

  /** The layout of group 0 for a string of one letter per binding: "r" read, "w" read_write. */
  layout(bindings) {
    let layout = this.layouts.get(bindings);
    if (layout === undefined) {
      const types = { r: "read-only-storage", w: "storage" };
      const entries = [...bindings].map((letter, binding) => {
        if (!(letter in types))
          throw new TypeError(`bindings "${bindings}": "${letter}" is neither "r" nor "w"`);
        return { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: types[letter] } };
      });
      const gpu = this.device.createBindGroupLayout({ label: bindings, entries });
      layout = { id: this.layouts.size + 1, label: bindings, count: bindings.length, gpu };
      this.layouts.set(bindings, layout);
    }
    return layout;
  }

  /** The layout of group 1 for parameters that take `step` bytes of the arena. */
  arenaLayout(step) {
    let layout = this.arenaLayouts.get(step);
    if (layout === undefined) {
      const buffer = { type: "uniform", hasDynamicOffset: true, minBindingSize: step };
      const entries = [{ binding: 0, visibility: GPUShaderStage.COMPUTE, buffer }];
      layout = this.device.createBindGroupLayout({ label: `arena ${step}`, entries });
      this.arenaLayouts.set(step, layout);
    }
    return layout;
  }

  async #warm(key, source, bindings, paramsBytes, immediate, label) {
    const pipeline = this.#describe(bindings, paramsBytes, immediate, label);
    const module = this.#module(label, source);
    try {
      pipeline.gpu = await this.device.createComputePipelineAsync(this.#descriptor(pipeline, module));
    } catch (error) {
      throw new Error(`validation: ${await explain(label, error.message, module, source)}`);
    }
    // The synchronous twin may have been asked for the same meanwhile.
    return this.ids.get(key) ?? this.#keep(key, pipeline);
  }

  /** Nothing is replaced any more. */
  close() {
    clearTimeout(this.timer);
    this.compact.length = 0;
  }

  /** Replace compact forms once no pipeline has been asked for or compiled for a while. */
  #whenQuiet() {
    clearTimeout(this.timer);
    if (this.compact.length > 0) this.timer = setTimeout(() => this.#replaceNext(), QUIET_MS);
  }

  #replaceNext() {
    if (this.compiling > 0) return; // whoever ends last sets the timer again
    while (this.replacing < BESIDE && this.compact.length > 0) {
      this.replacing++;
      this.compact
        .shift()()
        .catch(() => {}) // the compact form stays
        .finally(() => {
          this.replacing--;
          this.#replaceNext();
        });
    }
  }

  /** Compile the full form of a pipeline that runs in its compact form, which stays if that fails. */
  async #replace(pipeline, source) {
    if (pipeline.broken !== null || this.ids.get(pipeline.key) === undefined) return; // nobody runs it any more
    const { label } = pipeline;
    let said = "";
    this.faults.open("validation");
    const module = this.#module(label, source);
    const isKnown = this.faults.close(async (message) => (said = await explain(label, message, module, source)));
    await this.device.createComputePipelineAsync(this.#descriptor(pipeline, module)).then(
      (gpu) => (pipeline.gpu = gpu),
      async ({ message }) => {
        await isKnown;
        if (said === "") this.faults.add(`validation: ${label}: ${message}`);
      },
    );
  }

  #describe(bindings, paramsBytes, immediate, label) {
    const most = immediate ? this.mostImmediate : this.mostUniform;
    if (paramsBytes > most) {
      throw new RangeError(`${label}: ${paramsBytes} bytes of parameters exceed the limit of ${most}`);
    }
    const layout = this.layout(bindings);
    const step = immediate ? 0 : arenaBytes(paramsBytes);
    return { label, layout, paramsBytes, immediate, step, gpu: null, compiled: null, broken: null, finish: null, key: "" };
  }

  #module(label, source) {
    const code = source.length < SHORT ? source : shortened(source);
    return this.device.createShaderModule({ label, code });
  }

  #descriptor({ label, layout, paramsBytes, immediate, step }, module) {
    const immediateSize = immediate ? Math.ceil(paramsBytes / 4) * 4 : 0;
    return {
      label,
      layout: this.#pipelineLayout(layout, step, immediateSize),
      compute: { module, entryPoint: "main" },
    };
  }

  /** The layout of pipelines with these bindings and parameters, which many share. */
  #pipelineLayout(layout, step, immediateSize) {
    const key = `${layout.label} ${step} ${immediateSize}`;
    let gpu = this.pipelineLayouts.get(key);
    if (gpu === undefined) {
      const bindGroupLayouts = step > 0 ? [layout.gpu, this.arenaLayout(step)] : [layout.gpu];
      const description = { label: key, bindGroupLayouts };
      if (immediateSize > 0) description.immediateSize = immediateSize;
      gpu = this.device.createPipelineLayout(description);
      this.pipelineLayouts.set(key, gpu);
    }
    return gpu;
  }

  #keep(key, pipeline) {
    const id = this.unused.pop() ?? this.made.length;
    this.made[id] = pipeline;
    pipeline.key = key;
    this.count++;
    this.ids.set(key, id);
    return id;
  }
}

function keyOf(source, bindings, paramsBytes, immediate) {
  return `${bindings} ${paramsBytes} ${immediate} ${source}`;
}

/** What the compiler said, with the line of the source that each message is about. */
async function explain(label, message, module, source) {
  const { messages } = await module.getCompilationInfo();
  const lines = source.split("\n");
  const errors = messages.filter(({ type }) => type === "error");
  if (errors.length === 0) return `${label}: ${message}`;
  const said = errors.map(({ lineNum, linePos, message }) => {
    return `line ${lineNum}:${linePos}: ${message}\n    ${lineNum} | ${lines[lineNum - 1] ?? ""}`;
  });
  return `${label}: ${said.join("\n")}`;
}
