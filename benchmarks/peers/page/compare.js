// Runs the comparison: for each row the libraries take turns, repetition by repetition, and one at a time computes. Everything
// that was seen is posted to the driver as it happens; what it means is decided there.

import { Library } from "./library.js";
import { grownUnits, unitsOf } from "./units.js";

// Outputs that are compared in a repetition, and in one that only finds out how many units there are to be.
const CHECKED = 32;
const CHECKED_BEFORE = 4;

const base = new URL("/-/", location.href);
const post = (path, body) => fetch(new URL(path, base), { method: "POST", body: JSON.stringify(body) });
const tell = (event) => post("event", event);

/** What WebGPU says of the machine. A browser that has just started may need a moment to find its adapter. */
async function describe() {
  let adapter = null;
  for (let i = 0; i < 20 && !adapter; i++) {
    adapter = await navigator.gpu?.requestAdapter();
    if (!adapter) await new Promise((resolve) => setTimeout(resolve, 300));
  }
  if (!adapter) throw new Error("This browser finds no WebGPU adapter. Give the flags that it needs by --chromium-arg.");
  const { vendor, architecture, device, description } = adapter.info;
  return {
    adapter: { vendor, architecture, device, description },
    features: [...adapter.features].sort(),
    browser: navigator.userAgent,
    cores: navigator.hardwareConcurrency,
    isolated: crossOriginIsolated,
  };
}

/** One library in one form, such as jax-js with jit. */
class Lane {
  constructor(library, form) {
    this.library = library;
    this.form = form;
    this.lost = false;
  }

  /**
   * Measure k units once and tell of it; a lane that failed takes no further part in the row. All outputs are compared, or
   * `checked` of them by chance.
   */
  async repeat(row, phase, repetition, k, seconds, checked = CHECKED) {
    if (this.lost || !this.library.running) return null;
    const place = { row: row.name, library: this.library.name, form: this.form };
    try {
      const options = [this.form, k, Math.min(checked, row.checked ?? CHECKED), repetition];
      const sample = await this.library.call("repeat", options, seconds);
      await tell({ kind: "sample", ...place, phase, repetition, ...sample });
      return sample;
    } catch (error) {
      this.lost = true;
      await tell({ kind: "failed", ...place, error: error.message });
      return null;
    }
  }
}

async function lanesOf(row, libraries, seconds) {
  const lanes = [];
  for (const library of libraries) {
    const place = { row: row.name, library: library.name };
    try {
      if (!library.running) await tell({ kind: "library", name: library.name, ...(await library.open(seconds)) });
      const { forms, unavailable } = await library.call("prepare", [row], seconds);
      if (unavailable) await tell({ kind: "unavailable", ...place, why: unavailable });
      for (const { form, note } of forms ?? []) {
        lanes.push(new Lane(library, form));
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

async function measure(row, libraries, { repetitions, repetition_ms, row_seconds, call_seconds, grow }) {
  const deadline = performance.now() + 1000 * row_seconds;
  const lanes = await lanesOf(row, libraries, call_seconds);
  const estimates = [];
  for (const lane of lanes) {
    // The first call compiles; the second says how long a unit takes.
    if (!(await lane.repeat(row, "first", 0, 1, call_seconds))) continue;
    const again = await lane.repeat(row, "warm", 0, 1, call_seconds);
    if (again) estimates.push(again.ms);
  }
  if (estimates.length) {
    const tried = async (k) => {
      const samples = [];
      for (const lane of lanes) samples.push(await lane.repeat(row, "warm", 0, k, call_seconds, CHECKED_BEFORE));
      return samples.filter(Boolean).map(({ ms }) => ms);
    };
    const units = grow
      ? await grownUnits(row, estimates, repetition_ms, tried)
      : unitsOf(row, estimates, repetition_ms);
    // Twice more as it will be measured: what watches for work that comes again has seen it by then.
    for (const r of [1, 2]) for (const lane of lanes) await lane.repeat(row, "warm", r, units, call_seconds);
    for (let r = 0; r < repetitions && (r < 3 || performance.now() < deadline); r++) {
      // Forth and back, so that nobody always follows the same neighbour.
      const order = r % 2 ? [...lanes].reverse() : lanes;
      for (const lane of order) await lane.repeat(row, "queued", r, units, call_seconds);
      if (units > 1) for (const lane of order) await lane.repeat(row, "single", r, 1, call_seconds);
    }
  }
  for (const library of libraries) {
    // One that cannot tidy up is opened anew for the next row.
    if (library.running) await library.call("finish", [], call_seconds).catch(() => library.close());
  }
}

let failure = null;
try {
  const { libraries, rows, settings } = await (await fetch(new URL("job", base))).json();
  await tell({ kind: "machine", ...(await describe()) });
  const open = libraries.map((options) => new Library(options));
  for (const row of rows) {
    await tell({ kind: "row", row: row.name });
    await measure(row, open, settings);
  }
  await tell({ kind: "own", ...(await costs(open[0], settings)) }); // the first is Pellucid
} catch (error) {
  failure = String(error?.stack ?? error);
}
await post("end", failure);
