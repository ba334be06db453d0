// An op row: every library by the clock, its calls queued and waited for, two lengths of queues subtracted. Libraries take turns.

// Calls of the longer queue, at least and at most; the shorter has a quarter of them.
const [LEAST, MOST] = [2, 512];
// A form that takes so many times as long as another of the same library takes no further part.
const BEHIND = 1.5;
// A call of so many milliseconds gets fewer rounds; one of so many is measured alone.
const [SLOW_MS, SINGLE_MS] = [50, 250];
const SLOW_ROUNDS = 3;
// Parts of the row's side at which another library is tried first, for a queue that takes minutes cannot be ended.
const PARTS = [8, 4];
const TURNS = 2;

/** A library in one form in one row. */
class Lane {
  constructor(library, form, seconds) {
    this.library = library;
    this.form = form;
    this.seconds = seconds;
    this.ms = Infinity; // of a call, as far as is known
    this.calls = null;
  }

  /** One queue of k calls, of which `checked` outputs are compared. */
  async queue(k, checked = 0) {
    await this.library.call("ready", [this.form, k], this.seconds);
    const sample = await this.library.call("repeat", [this.form, k, checked, k, 0], this.seconds);
    if (sample.lost) {
      this.library.close();
      throw new Error(`the device was lost: ${sample.lost}`);
    }
    if (sample.errors) throw new Error(`${sample.errors} WebGPU errors, first: ${sample.error}`);
    return sample;
  }

  /** Milliseconds of a call, by queues of two lengths. */
  async round() {
    if (this.calls === 1) return (await this.queue(1)).ms;
    const few = Math.max(1, this.calls >> 2);
    const short = await this.queue(few);
    const long = await this.queue(this.calls);
    return (long.ms * this.calls - short.ms * few) / (this.calls - few);
  }

  /** Find out how many calls the longer queue has; the fewer there are, the more of their time is that of the wait. */
  async settle(queueMs) {
    let tried = 0;
    this.calls = 1;
    while (this.calls > 1.5 * tried) {
      tried = this.calls;
      this.ms = (await this.queue(tried)).ms;
      if (this.ms > SINGLE_MS) return;
      this.calls = Math.max(LEAST, Math.min(MOST, Math.floor(queueMs / this.ms)));
    }
  }
}

/**
 * Milliseconds of a call at full size, by those at the two smaller sizes, from each of which there are four times as many numbers
 * to the next: it grows by as much at each of two more such steps.
 */
const foreseen = ([first, second]) => second * Math.max(1, second / first) ** 2;

/** By form, why a library is not asked to do the whole row. */
async function refused(row, library, settings, tell) {
  const why = new Map();
  const sides = PARTS.map((part) => row.side / part).filter((side) => side >= 64 && side % 32 === 0);
  if (sides.length < PARTS.length) return why;
  const times = new Map();
  for (const side of sides) {
    const { forms } = await library.call("prepare", [{ ...row, side }], settings.call_seconds);
    for (const { form } of forms ?? []) {
      if (why.has(form)) continue;
      const lane = new Lane(library, form, settings.call_seconds);
      try {
        await lane.queue(1); // compiles
        const ms = [];
        for (let turn = 0; turn < TURNS; turn++) ms.push((await lane.queue(1)).ms);
        times.set(form, [...(times.get(form) ?? []), Math.min(...ms)]);
      } catch (error) {
        why.set(form, error.message);
        if (!library.running) await opened(library, settings, tell);
        await library.call("prepare", [{ ...row, side }], settings.call_seconds);
      }
    }
  }
  for (const [form, found] of times) {
    if (found.length < sides.length) continue;
    const seconds = foreseen(found) / 1000;
    const [small, large] = found.map((ms) => ms.toPrecision(3));
    const grows = `${small} ms for matrices of ${sides[0]} rows, ${large} of ${sides[1]}`;
    if (seconds > settings.most_seconds) {
      why.set(form, `a call would take about ${seconds.toPrecision(2)} s: ${grows}`);
      await tell({ kind: "cut", row: row.name, library: library.name, form, ms: 1000 * seconds });
    }
  }
  return why;
}

async function opened(library, { call_seconds }, tell) {
  await tell({ kind: "library", name: library.name, ...(await library.open(call_seconds)) });
}

/** Those lanes of a library that have given an output and are to be measured. */
async function lanesOf(row, library, settings, tell) {
  const expressions = row.expressions[library.name];
  const own = { ...row, expressions };
  const place = { row: row.name, library: library.name };
  if (expressions.none) {
    await tell({ kind: "unavailable", ...place, why: expressions.none });
    return [];
  }
  const lanes = [];
  try {
    if (!library.running) await opened(library, settings, tell);
    const why = library.options.adapter ? await refused(own, library, settings, tell) : new Map();
    const prepare = () => library.call("prepare", [own], settings.call_seconds);
    const { forms, unavailable } = await prepare();
    if (unavailable) throw new Error(unavailable);
    for (const { form, note } of forms) {
      const lane = new Lane(library, form, settings.call_seconds);
      try {
        if (why.has(form)) throw new Error(why.get(form));
        const { checks } = await lane.queue(1, 1);
        await lane.settle(settings.repetition_ms);
        await tell({ kind: "lane", ...place, form, note, check: checks[0] });
        lanes.push(lane);
      } catch (error) {
        await tell({ kind: "failed", ...place, form, error: error.message });
        if (library.running) continue;
        // What was begun with it has gone as well.
        await opened(library, settings, tell);
        await prepare();
      }
    }
  } catch (error) {
    await tell({ kind: "failed", ...place, form: null, error: error.message });
  }
  const best = Math.min(...lanes.map(({ ms }) => ms));
  return lanes.filter(({ ms }) => ms <= BEHIND * best);
}

/** Measure a row and tell of it: which lanes there are, their times round by round, what failed and why. */
export async function measureOp(row, libraries, settings, warmUp, tell) {
  const { repetitions, row_seconds } = settings;
  const began = performance.now();
  const lanes = [];
  for (const library of libraries) lanes.push(...(await lanesOf(row, library, settings, tell)));
  for (let r = 0; r < repetitions; r++) {
    if (r > 0 && performance.now() - began > 1000 * row_seconds) break;
    await warmUp();
    for (const lane of r % 2 ? [...lanes].reverse() : lanes) {
      if (!lane.library.running || lane.failed || (r >= SLOW_ROUNDS && lane.ms > SLOW_MS)) continue;
      const place = { row: row.name, library: lane.library.name, form: lane.form };
      try {
        await tell({ kind: "sample", ...place, repetition: r, calls: lane.calls, ms: await lane.round() });
      } catch (error) {
        lane.failed = true;
        await tell({ kind: "failed", ...place, error: error.message });
      }
    }
  }
  for (const library of libraries) {
    if (library.running) await library.call("finish", [], settings.call_seconds).catch(() => library.close());
  }
  await tell({ kind: "measured", row: row.name });
}
