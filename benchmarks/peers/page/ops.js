// An op row: every library by the clock, its calls queued and waited for, two lengths of queues subtracted. Libraries take turns.

// Calls of the longer queue, at least and at most; the shorter has a quarter of them.
const [LEAST, MOST] = [2, 512];
// A form that takes so many times as long as another of the same library takes no further part.
const BEHIND = 1.5;
// A call of so many milliseconds gets fewer rounds; one of so many is measured alone.
const [SLOW_MS, SINGLE_MS] = [50, 250];
const SLOW_ROUNDS = 3;
// Operands are made for sides that are multiples of the one, and at least the other.
const [STEP, LEAST_SIDE] = [32, 64];
// Parts of the row's side at which another library is tried first, for a queue that takes minutes cannot be ended. From each to
// the next there are four times as many numbers.
const PARTS = [8, 4, 2];
const TURNS = 3;

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
 * Seconds of a call at full size, if it grows at each step as at the last one; and at the next size. Null where one time alone is
 * known.
 */
function foreseen(times) {
  if (times.length < 2) return null;
  const [before, last] = times.slice(-2);
  const growth = Math.max(1, last / before);
  const steps = Math.log2(PARTS[times.length - 1]);
  return { whole: (last * growth ** steps) / 1000, next: (last * growth) / 1000 };
}

/** By form, why a library is not asked to do the whole row; null where that was told. */
async function refused(row, library, settings, tell) {
  const { call_seconds, most_seconds } = settings;
  const why = new Map();
  const times = new Map();
  const sides = PARTS.map((part) => Math.floor(row.side / part / STEP) * STEP);
  if (sides[0] < LEAST_SIDE) return why;
  let open = null; // forms that are not decided
  for (const side of sides) {
    const prepare = () => library.call("prepare", [{ ...row, side }], call_seconds);
    const { forms } = await prepare();
    open ??= (forms ?? []).map(({ form }) => form);
    for (const form of [...open]) {
      const decide = () => open.splice(open.indexOf(form), 1);
      try {
        const lane = new Lane(library, form, call_seconds);
        await lane.queue(1); // compiles
        const ms = [];
        for (let turn = 0; turn < TURNS; turn++) ms.push((await lane.queue(1)).ms);
        const found = [...(times.get(form) ?? []), Math.min(...ms)];
        times.set(form, found);
        const seconds = foreseen(found);
        if (seconds === null) continue;
        if (seconds.whole <= most_seconds) decide();
        else if (seconds.next > most_seconds || found.length === sides.length) {
          decide();
          const grows = found.map((each, at) => `${each.toPrecision(3)} ms for matrices of ${sides[at]} rows`).join(", ");
          const place = { row: row.name, library: library.name, form };
          const about = `a call would take about ${seconds.whole.toPrecision(2)} s: ${grows}`;
          await tell({ kind: "cut", ...place, ms: 1000 * seconds.whole, why: about });
          why.set(form, null);
        }
      } catch (error) {
        decide();
        // What it refuses at this size it may do at the whole, but for what broke it.
        if (library.running) continue;
        why.set(form, error.message);
        await opened(library, settings, tell);
        await prepare();
      }
    }
    if (open.length === 0) break;
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
      if (why.get(form) === null) continue;
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
