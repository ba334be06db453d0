// A launch: what every run of one plan has in common. Registered once, so that a record stays short.

/**
 * A launch of `pipeline` over (x, y, z) workgroups. `params`: bytes of the parameter block; `patches`: the words of it
 * that each run brings. `most` is the device's limit of workgroups per dimension; `turn` as in `Stream.launch`.
 */
export function makeLaunch(pipeline, params, patches, x, y, z, most, turn) {
  const { label, paramsBytes, layout, step } = pipeline;
  if (params.length !== paramsBytes) {
    throw new RangeError(
      `${label}: ${params.length} bytes of parameters where the pipeline takes ${paramsBytes}`,
    );
  }
  if (!(x <= most && y <= most && z <= most)) {
    throw new RangeError(
      `${label}: grid (${x}, ${y}, ${z}) exceeds this device's ${most} workgroups per dimension`,
    );
  }
  const words = new Uint32Array(Math.ceil(paramsBytes / 4));
  new Uint8Array(words.buffer).set(params);
  const positions = Uint32Array.from(patches);
  if (turn >= words.length || positions.some((position) => position >= words.length)) {
    throw new RangeError(`${label}: a patch lies outside the ${words.length} words of the parameters`);
  }
  return {
    label,
    pipeline,
    count: layout.count,
    words, // the template; a run overwrites its patches in place
    patches: positions,
    turn,
    step,
    arenaGroup: null,
    x,
    y,
    z,
    group: { blocks: [], bindGroup: null }, // the bind group of the last run,
    before: { blocks: [], bindGroup: null }, // and the one before: results that are held take turns between two sets
  };
}
