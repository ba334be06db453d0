// How many units a repetition queues: as many as take `repetition_ms`.

const clamp = (value, low, high) => Math.max(low, Math.min(high, Math.floor(value)));
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/**
 * The number of units, by the milliseconds that one takes. A row that sets `least` needs several to show that its work was done:
 * the loss of a training's first step says nothing of the step.
 */
function unitsOf({ units, least = 1, inputs }, estimate, repetitionMs) {
  return units ?? clamp(repetitionMs / estimate, least, inputs);
}

/**
 * The time to go by where several lanes must queue as many units: the median one's, for which the slowest takes four times
 * `repetition_ms` at most.
 */
export const togetherOf = (estimates) => Math.max(median(estimates), Math.max(...estimates) / 4);

/**
 * The number of units of a repetition. Where a wait takes longer than a unit, the time of one says little, so more and more are
 * measured until it is known; what would end that is measured twice, for a library may still have compiled something.
 * `estimate` is the milliseconds of one unit alone, `measure(k)` resolves to those for one of k, or null if it failed.
 */
export async function settledUnits(row, estimate, repetitionMs, measure) {
  let tried = 1;
  let twice = false;
  while (estimate !== null) {
    const wanted = unitsOf(row, estimate, repetitionMs);
    const enough = wanted < 1.5 * tried;
    if (row.units || (enough && twice) || tried >= row.inputs) return wanted;
    if (!enough) tried = Math.min(wanted, 8 * tried);
    const again = await measure(tried);
    estimate = enough && again !== null ? Math.min(estimate, again) : again;
    twice = enough;
  }
  return tried;
}
