// ONNX Runtime Web on its WebGPU provider, the build for JSPI. Everything is a graph that was built before (graphs.py); a row of
// one op is a graph of one node.

import { Unavailable } from "../measure.js";
import { checksum, series, uniform } from "../data.js";
import { blockParameters } from "../models.js";
import { decoderRows } from "./ort_decoder.js";

export async function open({ packages, graphs }) {
  const folder = `${packages["onnxruntime-web"]}dist/`;
  const ort = await import(`${folder}ort.jspi.bundle.min.mjs`);
  ort.env.wasm.wasmPaths = folder;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  const session = (name, options = {}) =>
    ort.InferenceSession.create(`${graphs}${name}.onnx`, {
      executionProviders: ["webgpu"],
      graphOptimizationLevel: "all",
      preferredOutputLocation: "gpu-buffer",
      ...options,
    });
  // The device is there from the first session on and goes with the last: this one stays.
  await session("add");
  const device = await ort.env.webgpu.device;
  return {
    sync: () => device.queue.onSubmittedWorkDone(),
    read: (output) => output.getData(),
    free: (output) => output.dispose(),
    rows: { ...rows(ort, device, session), ...decoderRows(ort, session, graphs) },
  };
}

function rows(ort, device, session) {
  const size = (shape) => shape.reduce((a, b) => a * b, 1);

  /** A tensor on the device. */
  function upload(values, dims) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const buffer = device.createBuffer({ size: Math.max(16, values.byteLength), usage });
    device.queue.writeBuffer(buffer, 0, values);
    return ort.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims, dispose: () => buffer.destroy() });
  }
  const tensor = (shape, seed, scale, offset) => upload(uniform(size(shape), seed, scale, offset), shape);
  /** Inputs for all units, on the device. */
  function several(row, shape, seed, scale, offset) {
    const values = series(row.inputs, size(shape), seed, scale, offset);
    return Array.from({ length: row.inputs }, (_, i) => upload(values(i), shape));
  }
  const disposeAll = (tensors) => tensors.forEach((each) => each.dispose());

  /** A form that runs one graph for each unit; `x` names the input that differs. */
  async function graph(name, x, inputs, shared = {}) {
    const run = await session(name);
    return {
      unit: async (i) => (await run.run({ ...shared, [x]: inputs[i] })).y,
      async after() {
        disposeAll([...inputs, ...Object.values(shared)]);
        await run.release();
      },
    };
  }

  /** Whether two graphs give the same output, but for rounding. */
  async function same(first, second, feeds) {
    const outputs = [];
    for (const name of [first, second]) {
      const run = await session(name);
      const { y } = await run.run(feeds);
      outputs.push(await y.getData(true));
      await run.release();
    }
    const [expected, found] = outputs;
    const [, norm] = checksum(expected);
    const [, distance] = checksum(expected.map((value, i) => value - found[i]));
    return distance < 1e-3 * norm;
  }

  const matrices = (row) => several(row, [row.rows, row.columns], 6, 4);
  return {
    async matmul({ n, ...row }) {
      const inputs = several(row, [n, n], 1);
      return { eager: await graph("matmul", "a", inputs, { b: tensor([n, n], 2) }) };
    },
    async chain({ n, ops, ...row }) {
      const inputs = several(row, [n], 3);
      const shared = { m: tensor([n], 4, 0.9), c: tensor([n], 5) };
      const [mul, add] = [await session("mul"), await session("add")];
      async function unit(i) {
        let x = inputs[i];
        for (let k = 0; k < ops; k++) {
          const { y } = k % 2 ? await add.run({ a: x, b: shared.c }) : await mul.run({ a: x, b: shared.m });
          if (k) x.dispose();
          x = y;
        }
        return x;
      }
      const captured = { ...(await graph("chain", "x", inputs, shared)), note: "one graph" };
      const after = async () => void (await mul.release(), await add.release());
      return { eager: { unit, after, note: "a run for each op" }, captured };
    },
    softmax: async (row) => ({ eager: await graph("softmax", "x", matrices(row)) }),
    async layer_norm(row) {
      const shared = { gain: tensor([row.columns], 7), shift: tensor([row.columns], 8) };
      return { eager: await graph("layer_norm", "x", matrices(row), shared) };
    },
    async sum({ n, ...row }) {
      return { eager: await graph("sum", "x", several(row, [n], 9, 1, 1)) };
    },
    async conv2d({ channels, size, out, kernel, ...row }) {
      const inputs = several(row, [1, channels, size, size], 10);
      return { eager: await graph("conv2d", "x", inputs, { w: tensor([out, channels, kernel, kernel], 21, 0.1) }) };
    },
    async block(row) {
      const shared = Object.fromEntries(
        blockParameters(row).map(({ name, shape, values }) => [name, upload(values, shape)]),
      );
      const inputs = several(row, [1, row.tokens, row.d], 22);
      // The contributed op for attention gives other values on some adapters; it is used where it does not.
      const fused = await same("block", "block_fused", { ...shared, x: inputs[0] });
      const note = fused ? "one graph, attention as one contributed op" : "one graph, attention of standard ops";
      return { captured: { ...(await graph(fused ? "block_fused" : "block", "x", inputs, shared)), note } };
    },
    async upload({ n, ...row }) {
      const values = series(row.inputs, n, 23);
      const data = Array.from({ length: row.inputs }, (_, i) => new ort.Tensor("float32", values(i), [n]));
      return { eager: { ...(await graph("upload", "x", data)), note: "as the input of a graph that hands it on" } };
    },
    async readback({ n, ...row }) {
      const inputs = several(row, [n], 24, 1, 1);
      const sum = await session("sum");
      const sums = [];
      async function before(k) {
        disposeAll(sums.splice(0));
        for (const x of inputs.slice(0, k)) sums.push((await sum.run({ x })).y);
        await device.queue.onSubmittedWorkDone();
      }
      async function after() {
        disposeAll([...sums, ...inputs]);
        await sum.release();
      }
      return { eager: { unit: (i) => sums[i].getData(), before, after } };
    },
    train_mlp: notForTraining,
    train_gpt: notForTraining,
  };
}

function notForTraining() {
  throw new Unavailable("the package does not train");
}
