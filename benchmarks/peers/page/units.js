// How many units a repetition queues: as many as take `repetition_ms`.

const clamp = (value, low, high) => Math.max(low, Math.min(high, Math.floor(value)));
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/**
 * The number of units, by the milliseconds that one takes. A row that sets `least` needs several to show that its work was done:
 * the loss of a training's first step says nothing of the step.
 */
export function unitsOf({ units, least = 1, inputs }, estimate, repetitionMs) {
  return units ?? clamp(repetitionMs / estimate, least, inputs);
}

/**
 * The time to go by where several lanes must queue as many units: the median one's, for which the slowest takes four times
 * `repetition_ms` at most.
 */
export const togetherOf = (estimates) => Math.max(median(estimates), Math.max(...estimates) / 4);

/**
 * The number of units for a device on which a wait takes longer than a unit, so that the time of one unit says little: more and
 * more are measured until it is known. `measure(k)` resolves to the milliseconds for one of k units, or null if it failed.
 */
export async function grownUnits(row, estimate, repetitionMs, measure) {
  let tried = 1;
  while (estimate !== null) {
    const wanted = unitsOf(row, estimate, repetitionMs);
    if (row.units || wanted < 1.5 * tried || tried >= row.inputs) return wanted;
    tried = Math.min(wanted, 8 * tried);
    estimate = await measure(tried);
  }
  return tried;
}
