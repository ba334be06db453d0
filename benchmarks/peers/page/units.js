// How many units a repetition queues: as many as take `repetition_ms` by the median library.

const clamp = (value, low, high) => Math.max(low, Math.min(high, Math.floor(value)));
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/**
 * The number of units, by the milliseconds that each lane takes for one: the same for all, so that each output has its
 * counterparts. A row that sets `least` needs several to show that its work was done: the loss of a training's first step says
 * nothing of the step.
 */
export function unitsOf({ units, least = 1, inputs }, estimates, repetitionMs) {
  if (units) return units;
  const slowest = Math.max(...estimates);
  return clamp(Math.min(repetitionMs / median(estimates), (4 * repetitionMs) / slowest), least, inputs);
}

/**
 * The same for a device on which a wait takes longer than a unit, so that the time of one unit says little: more and more are
 * measured until it is known. `measure(k)` resolves to the milliseconds for one of k units by lane.
 */
export async function grownUnits(row, estimates, repetitionMs, measure) {
  let tried = 1;
  while (estimates.length > 0) {
    const wanted = unitsOf(row, estimates, repetitionMs);
    if (row.units || wanted < 1.5 * tried || tried >= row.inputs) return wanted;
    tried = Math.min(wanted, 8 * tried);
    estimates = await measure(tried);
  }
  return tried;
}
