// Runs the comparison: for each row the libraries take turns, repetition by repetition, and one at a time computes. Everything
// that was seen is posted to the driver as it happens; what it means is decided there.

import { Library } from "./library.js";
import { measureOp } from "./ops.js";
import { settledUnits, togetherOf } from "./units.js";
import { Warmup } from "./warmup.js";

// Outputs that are compared in a repetition, and in one whose time does not count.
const CHECKED = 32;
const CHECKED_BEFORE = 4;
// Of how many repetitions a single unit is measured, too.
const SINGLES = 3;
// After so many steps of a training, its parameters are compared.
const WATCHED_STEPS = 8;

const base = new URL("/-/", location.href);
const post = (path, body) => fetch(new URL(path, base), { method: "POST", body: JSON.stringify(body) });
const tell = (event) => post("event", event);

/** The adapter. A browser that has just started may need a moment to find it. */
async function findAdapter() {
  for (let i = 0; i < 20; i++) {
    const adapter = await navigator.gpu?.requestAdapter();
    if (adapter) return adapter;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  throw new Error("This browser finds no WebGPU adapter. Give the flags that it needs by --chromium-arg.");
}

/** What WebGPU says of the machine. */
function describe(adapter) {
  const { vendor, architecture, device, description } = adapter.info;
  return {
    adapter: { vendor, architecture, device, description },
    features: [...adapter.features].sort(),
    browser: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    isolated: crossOriginIsolated,
  };
}

/** One library in one form, such as jax-js with jit, in one row. */
class Lane {
  /** `warmUp` brings the clock up and resolves to what tells it. */
  constructor(row, library, form, seconds, warmUp) {
    this.row = row;
    this.library = library;
    this.form = form;
    this.seconds = seconds;
    this.warmUp = warmUp;
    this.units = null; // in a repetition, once it is known
    this.lost = false;
  }

  get running() {
    return !this.lost && this.library.running;
  }

  /**
   * Measure k units once and tell of it; a lane that failed takes no further part in the row. `checked` outputs are compared,
   * half of them among the first `shared`, which other lanes have as well. `cold` goes without warm-up.
   */
  async repeat(phase, repetition, k, { checked = CHECKED, shared = k, cold = false } = {}) {
    if (!this.running) return null;
    const { row, form } = this;
    const options = [form, k, Math.min(checked, row.checked ?? CHECKED), shared, repetition];
    const ready = await this.#try(() => this.#call("ready", [form, k]));
    if (!ready) return null;
    const warm_flop_per_second = cold ? null : await this.warmUp();
    const sample = await this.#try(() => this.#call("repeat", options));
    if (sample) await this.#tell({ kind: "sample", phase, repetition, ...sample, warm_flop_per_second });
    return sample;
  }

  #call(method, options) {
    return this.library.call(method, options, this.seconds);
  }

  #tell({ kind, ...event }) {
    return tell({ kind, row: this.row.name, library: this.library.name, form: this.form, ...event });
  }

  async #try(work) {
    try {
      return await work();
    } catch (error) {
      this.lost = true;
      await this.#tell({ kind: "failed", error: error.message });
      return null;
    }
  }
}

async function lanesOf(row, libraries, seconds, warmUp) {
  const lanes = [];
  for (const library of libraries) {
    const place = { row: row.name, library: library.name };
    try {
      if (!library.running) await tell({ kind: "library", name: library.name, ...(await library.open(seconds)) });
      const { forms, unavailable } = await library.call("prepare", [row], seconds);
      if (unavailable) await tell({ kind: "unavailable", ...place, why: unavailable });
      for (const { form, note } of forms ?? []) {
        lanes.push(new Lane(row, library, form, seconds, warmUp));
        await tell({ kind: "lane", ...place, form, note });
      }
    } catch (error) {
      await tell({ kind: "failed", ...place, form: null, error: error.message });
    }
  }
  return lanes;
}

/** What its own side costs; rows that were measured are not lost when this fails. */
async function costs(ours, { call_seconds }) {
  try {
    if (!ours.running) await ours.open(call_seconds);
    return await ours.call("own", [], call_seconds);
  } catch (error) {
    return { failed: error.message };
  }
}

/** Find out how many units these lanes queue in a repetition, the same number for each of them. */
async function settle(row, lanes, { repetition_ms }) {
  // The first call compiles; the second says how long a unit takes.
  for (const lane of lanes) await lane.repeat("first", 0, 1, { cold: true });
  async function time(k, options) {
    const samples = [];
    for (const lane of lanes) samples.push(await lane.repeat("warm", 0, k, options));
    const times = samples.filter(Boolean).map(({ ms }) => ms);
    return times.length > 0 ? togetherOf(times) : null;
  }
  const one = await time(1);
  if (one === null) return;
  const before = { checked: CHECKED_BEFORE };
  const units = await settledUnits(row, one, repetition_ms, (k) => time(k, before));
  // Twice more as it will be measured: what watches for work that comes again has seen it by then.
  for (const r of [1, 2]) for (const lane of lanes) await lane.repeat("warm", r, units, { ...before, cold: true });
  if (row.watched) for (const lane of lanes) await lane.repeat("warm", 3, Math.min(units, WATCHED_STEPS), { cold: true });
  for (const lane of lanes) lane.units = units;
}

async function measure(row, libraries, settings, warmUp) {
  const { repetitions, row_seconds, call_seconds } = settings;
  const deadline = performance.now() + 1000 * row_seconds;
  const lanes = await lanesOf(row, libraries, call_seconds, warmUp);
  // Training steps are not alike: a later one finds other parameters. So all libraries make as many.
  for (const group of row.watched ? [lanes] : lanes.map((lane) => [lane])) await settle(row, group, settings);
  const measured = lanes.filter((lane) => lane.running && lane.units);
  const shared = Math.min(...measured.map(({ units }) => units));
  for (let r = 0; r < repetitions && (r < 3 || performance.now() < deadline); r++) {
    // Forth and back, so that nobody always follows the same neighbour.
    const order = r % 2 ? [...measured].reverse() : measured;
    for (const lane of order) await lane.repeat("queued", r, lane.units, { shared });
    if (r < SINGLES) for (const lane of order) if (lane.units > 1) await lane.repeat("single", r, 1);
  }
  for (const library of libraries) {
    // One that cannot tidy up is opened anew for the next row.
    if (library.running) await library.call("finish", [], call_seconds).catch(() => library.close());
  }
}

let failure = null;
try {
  // Held until this page's process ends, however it ends: the driver sees the connection close.
  globalThis.lifeline = new EventSource(await (await fetch(new URL("lifeline", base))).json());
  const { libraries, rows, settings } = await (await fetch(new URL("job", base))).json();
  const adapter = await findAdapter();
  await tell({ kind: "machine", ...describe(adapter) });
  // An adapter of software has no clock to bring up.
  const warmup = settings.warm_ms > 0 && !adapter.info.isFallbackAdapter ? await Warmup.open(adapter) : null;
  const warmUp = async () => (await warmup?.run(settings.warm_ms)) ?? null;
  const open = libraries.map((options) => new Library(options)); // the first is Pellucid
  const end = performance.now() + 60_000 * (settings.minutes ?? Infinity);
  for (const row of rows) {
    if (performance.now() > end) break;
    await tell({ kind: "row", row: row.name });
    if (row.kind === "op") await measureOp(row, open, settings, warmUp, tell);
    else await measure(row, open, settings, warmUp);
  }
  if (rows.some(({ kind }) => kind !== "op")) {
    await warmUp();
    await tell({ kind: "own", ...(await costs(open[0], settings)) });
  }
} catch (error) {
  failure = String(error?.stack ?? error);
}
await post("end", failure);
