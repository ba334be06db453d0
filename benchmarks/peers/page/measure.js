// The measuring of one library inside its worker; ours.py does the same for Pellucid. An adapter exports
//
//   open(options) -> { device, sync(outputs), read(output), free(output), rows }
//     device    what it says of its device, if anything
//     sync      resolves when the outputs, and the work behind them, are done
//     read      resolves to an output's numbers, a typed array
//     rows      by a row's `kind`: row => forms, or a promise of them; forms by name: { unit, before, follows, after, note }
//       unit(i)     queues unit i of the work and returns its output, or a promise of it
//       before(k)   prepares k units outside the measured time
//       follows     whether the units go on with what `before` began, so that nothing may come between
//       after()     gives back what the form holds
//       sync, read, free  instead of the library's
//       held        how many outputs are held; earlier ones are freed as others come. Without it all are
//       left()      resolves to what the units left behind besides their outputs, arrays of numbers
//     An output may be an array of numbers that was read already. In a row with `waits` each unit waits for its own.
//   Unavailable is thrown by a row that the library cannot do; the message says why.

import { checksum, sample } from "./data.js";
import { caught, lost } from "./trap.js";

export class Unavailable extends Error {}

export class Measure {
  #library;
  #forms = {};
  #waits = false;

  constructor(library) {
    this.#library = library;
  }

  /** Make a row's inputs. Resolves to { forms: [{ form, note }] } or { unavailable }. */
  async prepare(row) {
    await this.finish();
    caught(); // errors that come late are not this row's
    this.#waits = row.waits ?? false;
    const make = this.#library.rows[row.kind];
    if (!make) return { unavailable: "not offered by the library" };
    try {
      this.#forms = await make(row);
    } catch (error) {
      if (error instanceof Unavailable) return { unavailable: error.message };
      throw error;
    }
    return { forms: Object.entries(this.#forms).map(([form, { note }]) => ({ form, note: note ?? "" })) };
  }

  /** What a repetition of k units needs before it; apart from it, for the clock is brought up between both. */
  async ready(form, k) {
    const { before, follows } = this.#forms[form];
    if (!follows) await before?.(k);
    return true;
  }

  /**
   * One repetition: k units queued, their outputs held, one wait; then outputs are read and summed: all, or `checked` of
   * them by chance, half among the first `shared`; they are drawn from `seed` when the clock has stopped.
   */
  async repeat(form, k, checked, shared, seed) {
    const { unit, before, follows, left, held = k, ...own } = this.#forms[form];
    const { sync, read, free } = { ...this.#library, ...own };
    if (follows) await before(k);
    const outputs = [];
    const began = performance.now();
    for (let i = 0; i < k; i++) {
      const output = unit(i);
      outputs.push(output instanceof Promise ? await output : output);
      if (outputs.length > held) free(outputs.shift());
    }
    const queued = performance.now();
    if (!this.#waits) await sync(outputs);
    const done = performance.now();
    const units = sample(k, checked, seed, shared);
    const checks = [];
    for (const i of units) {
      checks.push(checksum(ArrayBuffer.isView(outputs[i]) ? outputs[i] : await read(outputs[i])));
    }
    for (const output of outputs) if (!ArrayBuffer.isView(output)) free(output);
    const remains = ((await left?.()) ?? []).map(checksum);
    const [errors, error] = caught();
    const [ms, host_ms] = [(done - began) / k, (queued - began) / k];
    return { k, ms, host_ms, units, checks, left: remains, errors, error, lost: lost() };
  }

  /** Give back what the row holds. */
  async finish() {
    const forms = Object.values(this.#forms);
    this.#forms = {};
    for (const { after } of forms) await after?.();
  }
}
