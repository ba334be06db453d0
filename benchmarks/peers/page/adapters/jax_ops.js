// The op rows with jax-js: one expression of ../../ops.json a row, eager and by jit. A name in an expression consumes its operand.

import { HELD, constants, named, shapes, taken, values } from "../op_values.js";

/** The kind "op". */
export function ops(jax) {
  const { numpy: np, nn, lax, random, jit, tree } = jax;
  const { queue } = jax.getWebGPUDevice();
  const known = new Map();

  function operands(side) {
    if (known.has(side)) return known.get(side);
    const numbers = values(side);
    const { b, ...others } = numbers;
    const { m, h } = shapes(side);
    const made = Object.fromEntries(Object.entries(others).map(([name, data]) => [name, np.array(data)]));
    made.b = np.array(b, { dtype: np.bool });
    made.m = np.array(numbers.x, { shape: m });
    made.h = np.array(numbers.x, { shape: h });
    made.n = np.array(new Float32Array(side * side), { shape: m }); // the imaginary part of m
    made.key = random.key(0);
    known.set(side, { made, x: numbers.x, fixed: constants(side, numbers) });
    return known.get(side);
  }

  /** Arrays may be views or formulas that nothing has computed yet; each gets its own buffer on the device, and the work behind it. */
  async function sync(outputs) {
    await Promise.all(tree.leaves(outputs).map((array) => array.ref.gpuBuffer()));
    await queue.onSubmittedWorkDone();
  }

  return {
    async op(row) {
      const { run, jit: captured = true } = row.expressions;
      const { made, x, fixed } = operands(row.side);
      await sync(made);
      const names = named(run, Object.keys(made));
      const scope = { jax, np, nn, lax, random, ...fixed };
      const written = new Function(...Object.keys(scope), ...names, `return ${run}`);
      const call = (...given) => written(...Object.values(scope), ...given);
      const form = (f) => ({
        unit: () => f(...names.map((name) => made[name].ref)),
        sync,
        held: HELD,
        free(output) {
          // What is given back before it was submitted would not be computed.
          for (const array of tree.leaves(output)) array.ref.gpuBufferSync();
          tree.dispose(output);
        },
        async read(output) {
          const first = output.imag ? output.real : tree.leaves(output)[0];
          return taken(await first.ref.data(), row, x);
        },
      });
      const forms = { eager: form(call) };
      if (captured) {
        const compiled = jit(call);
        forms.captured = { ...form(compiled), note: "jit", after: () => compiled.dispose() };
      }
      return forms;
    },
  };
}
