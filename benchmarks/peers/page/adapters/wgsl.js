// WGSL by hand, driven by plain WebGPU: no library, but what the device gives without one.

import { series, uniform } from "../data.js";
import { CHAIN, MATMUL, ROW_SOFTMAX, SUM } from "./wgsl_kernels.js";

export async function open() {
  const adapter = await navigator.gpu.requestAdapter();
  const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
  const device = await adapter.requestDevice({ requiredLimits: { maxStorageBufferBindingSize, maxBufferSize } });
  const { vendor, architecture, description } = adapter.info;
  const gpu = new Gpu(device);
  return {
    device: [vendor, architecture, description].filter(Boolean).join(" "),
    sync: () => device.queue.onSubmittedWorkDone(),
    read: (buffer) => gpu.read(buffer),
    free: (buffer) => buffer.destroy(),
    rows: rows(gpu),
  };
}

/** The few calls of WebGPU that the rows need. */
class Gpu {
  constructor(device) {
    this.device = device;
    this.queue = device.queue;
  }

  buffer(size) {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    return this.device.createBuffer({ size, usage });
  }

  upload(values) {
    const buffer = this.buffer(values.byteLength);
    this.queue.writeBuffer(buffer, 0, values);
    return buffer;
  }

  pipeline(code, constants = {}) {
    const module = this.device.createShaderModule({ code });
    return this.device.createComputePipeline({ layout: "auto", compute: { module, constants } });
  }

  group(pipeline, ...buffers) {
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    return this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  }

  /** Encode and submit: steps are [pipeline, bind group, workgroups], in one pass; then a copy, [from, to]. */
  run(steps, copy) {
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const [pipeline, group, ...grid] of steps) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(...grid);
    }
    pass.end();
    if (copy) encoder.copyBufferToBuffer(copy[0], 0, copy[1], 0, copy[1].size);
    this.queue.submit([encoder.finish()]);
  }

  async read(source) {
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    const staging = this.device.createBuffer({ size: source.size, usage });
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(source, 0, staging, 0, source.size);
    this.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const values = new Float32Array(staging.getMappedRange().slice(0));
    staging.destroy();
    return values;
  }
}

function rows(gpu) {
  const tensor = (n, seed, scale, offset) => gpu.upload(uniform(n, seed, scale, offset));
  /** What is made of the values for each unit: a buffer of them, if nothing else is said. */
  function several(row, n, seed, scale, offset, make = (values) => gpu.upload(values)) {
    const values = series(row.inputs, n, seed, scale, offset);
    return Array.from({ length: row.inputs }, (_, i) => make(values(i)));
  }
  const destroy = (buffers) => buffers.forEach((buffer) => buffer.destroy());

  /** A form of one kernel: `grid` workgroups, an output of `bytes`. */
  function kernel(pipeline, inputs, shared, bytes, ...grid) {
    const unit = (i) => {
      const out = gpu.buffer(bytes);
      gpu.run([[pipeline, gpu.group(pipeline, inputs[i], ...shared, out), ...grid]]);
      return out;
    };
    return { unit, after: () => destroy([...inputs, ...shared]) };
  }

  return {
    matmul({ n, ...row }) {
      const inputs = several(row, n * n, 1);
      const pipeline = gpu.pipeline(MATMUL, { SIZE: n });
      return { eager: kernel(pipeline, inputs, [tensor(n * n, 2)], 4 * n * n, n / 64, n / 64) };
    },
    chain({ n, ops, ...row }) {
      const inputs = several(row, n, 3);
      const operands = [tensor(n, 4, 0.9), tensor(n, 5)];
      const pipelines = [0, 1].map((ADD) => gpu.pipeline(CHAIN, { ADD }));
      /** The steps from one input to an output, through buffers of `made`. */
      function steps(input, made) {
        const path = [input, ...made];
        return Array.from({ length: ops }, (_, k) => {
          const pipeline = pipelines[k % 2];
          return [pipeline, gpu.group(pipeline, path[k], operands[k % 2], path[k + 1]), n / 64];
        });
      }
      const buffers = () => Array.from({ length: ops }, () => gpu.buffer(4 * n));
      const eager = (i) => {
        const made = buffers();
        gpu.run(steps(inputs[i], made));
        destroy(made.slice(0, -1));
        return made.at(-1);
      };
      const between = buffers();
      const prepared = inputs.map((input) => steps(input, between));
      const captured = (i) => {
        const out = gpu.buffer(4 * n);
        gpu.run(prepared[i], [between.at(-1), out]);
        return out;
      };
      const after = () => destroy([...inputs, ...operands, ...between]);
      return {
        eager: { unit: eager, after, note: "new buffers and bind groups for each op, one submit" },
        captured: { unit: captured, note: "buffers and bind groups made before, then a copy" },
      };
    },
    softmax({ rows, columns, ...row }) {
      const inputs = several(row, rows * columns, 6, 4);
      return { eager: kernel(gpu.pipeline(ROW_SOFTMAX), inputs, [], 4 * rows * columns, rows) };
    },
    sum({ n, ...row }) {
      const inputs = several(row, n, 9, 1, 1);
      const pipeline = gpu.pipeline(SUM);
      const groups = 1024;
      const unit = (i) => {
        const [parts, out] = [gpu.buffer(4 * groups), gpu.buffer(4)];
        const first = [pipeline, gpu.group(pipeline, inputs[i], parts), groups];
        gpu.run([first, [pipeline, gpu.group(pipeline, parts, out), 1]]);
        parts.destroy();
        return out;
      };
      return { eager: { unit, after: () => destroy(inputs) } };
    },
    upload({ n, ...row }) {
      const data = several(row, n, 23, 1, 0, (values) => values);
      return { eager: { unit: (i) => gpu.upload(data[i]) } };
    },
    readback({ n, ...row }) {
      // What the others read is a sum; here it is its value from the start.
      const sums = several(row, n, 24, 1, 1, (values) => values.reduce((a, b) => a + b, 0));
      const buffers = sums.map((sum) => gpu.upload(Float32Array.of(sum)));
      return { eager: { unit: (i) => gpu.read(buffers[i]), after: () => destroy(buffers) } };
    },
  };
}
