// The op rows with TensorFlow.js: one expression of ../../ops.json a row.

import { HELD, constants, named, taken, values } from "../op_values.js";

/** The kind "op". */
export function ops(tf) {
  const known = new Map();

  /** Operands for matrices of `side` rows; images a second time with their channels last, as the library has them. */
  function operands(side) {
    if (known.has(side)) return known.get(side);
    const numbers = values(side);
    const { x, y, i, j, b, k, r, o, q, v } = numbers;
    const [count, edge] = [side * side, side / 32];
    const int = (data) => tf.tensor1d(data, "int32");
    const made = { x: tf.tensor1d(x), y: tf.tensor1d(y), i: int(i), j: int(j), b: tf.tensor1d(b, "bool"), k: int(k), r: int(r), o: int(o) };
    Object.assign(made, { q: tf.tensor1d(q), v: tf.tensor1d(v) });
    onDevice(made);
    const h = tf.reshape(made.x, [-1, 32, edge, edge]);
    Object.assign(made, {
      m: tf.reshape(made.x, [side, side]),
      h,
      k1: tf.reshape(made.k, [count, 1]),
      r1: tf.reshape(made.r, [side, 1]),
      c: tf.transpose(h, [0, 2, 3, 1]),
      // Channels of depthToSpace lie in another order than those of pixel_shuffle.
      d: tf.tidy(() => tf.reshape(tf.transpose(tf.reshape(h, [-1, 8, 4, edge, edge]), [0, 3, 4, 2, 1]), [-1, edge, edge, 32])),
      z: tf.complex(tf.reshape(made.x, [side, side]), tf.zeros([side, side])),
    });
    known.set(side, { made, x, fixed: constants(side, numbers) });
    return known.get(side);
  }

  const leaves = (output) => (output instanceof tf.Tensor ? [output] : Object.values(output).flatMap(leaves));

  /** The library uploads at the first use; what it computes on the CPU counts when it is on the device. */
  function onDevice(output) {
    for (const { dataId, dtype } of leaves(output)) if (dtype !== "complex64") tf.backend().uploadToGPU(dataId);
    return output;
  }

  return {
    op(row) {
      const { run, setup, read } = row.expressions;
      const { made, x, fixed } = operands(row.side);
      const names = named(run, Object.keys(made));
      const call = new Function("tf", "made", ...Object.keys(fixed), ...names, `return ${run}`);
      const built = setup && new Function("tf", `return ${setup}`)(tf);
      const of = () => call(tf, built, ...Object.values(fixed), ...names.map((name) => made[name]));
      const shown = read && new Function("tf", "out", ...Object.keys(fixed), `return ${read}`);
      const waits = run.includes("Async");
      return {
        eager: {
          unit: waits ? async () => onDevice(await of()) : () => onDevice(tf.tidy(of)),
          held: HELD,
          free: (output) => tf.dispose(output),
          async read(output) {
            const first = shown ? tf.tidy(() => shown(tf, leaves(output)[0], ...Object.values(fixed))) : leaves(output)[0];
            const numbers = await first.data();
            return taken(first.dtype === "complex64" ? numbers.filter((_, place) => place % 2 === 0) : numbers, row, x);
          },
          note: waits ? "it waits for the device in each call" : "",
        },
      };
    },
  };
}
