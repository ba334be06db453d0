// Cases of the stream and its pool. Each gets a fresh stream; `immediate` says how its parameters travel.

import { Groups } from "/web/runtime/groups.js";
import { Block, blockBytes, Pool } from "/web/runtime/pool.js";
import { Stream, Window, equal, fails, kernels, matches, over, random, words } from "./stream_window.mjs";

export async function case_elementwise_and_chain(stream, immediate) {
  const { fill, join } = kernels(stream, immediate);
  const [make, add] = [over(stream, fill, 100), over(stream, join, 100)];
  const window = new Window();
  for (const slot of [1, 2, 3, 4]) window.alloc(slot, 400);
  window
    .run(make, [1], [3, 5])
    .run(make, [2], [1, 7])
    .run(add, [1, 2, 3], [1, 0])
    .run(add, [3, 3, 4], [2, 1]);
  window.submit(stream);
  const expected = Array.from({ length: 100 }, (_, i) => 3 * (4 * i + 12) + 1);
  equal(await words(stream, 4, 100), expected, "chain");
  equal(await words(stream, 4, 3, 40), expected.slice(40, 43), "a part of it");
  equal(stream.stats().passes, 1, "passes");
  equal(stream.failure(), null, "failure");
}

export async function case_a_block_freed_in_a_window_is_reused_in_it(stream, immediate) {
  const { fill, join } = kernels(stream, immediate);
  const [make, add] = [over(stream, fill, 64), over(stream, join, 64)];
  const window = new Window();
  window.alloc(1, 256).run(make, [1], [1, 0]);
  window.alloc(2, 256).run(add, [1, 1, 2], [1, 10]).free(1);
  window.alloc(3, 256).run(make, [3], [0, 1000]).submit(stream);
  equal(stream.stats().live_buffers, 2, "blocks");
  equal(stream.stats().reserved_bytes, 512, "bytes");
  equal((await words(stream, 2, 3))[2], 14, "the reader before the reuse");
  equal((await words(stream, 3, 3))[2], 1000, "the writer after the reuse");
}

export async function case_a_slot_that_is_never_used_gets_no_memory(stream) {
  new Window()
    .alloc(1, 1 << 20)
    .free(1)
    .submit(stream);
  equal(stream.stats().reserved_bytes, 0, "bytes");
  equal(stream.stats().submits, 0, "submits");
}

export async function case_a_slot_of_zero_bytes_can_be_bound(stream, immediate) {
  const launch = over(stream, kernels(stream, immediate).fill, 0);
  new Window().alloc(1, 0).run(launch, [1], [1, 1]).submit(stream);
  equal((await stream.read(1, 0, 0)).bytes.length, 0, "bytes");
  equal(stream.failure(), null, "failure");
}

export async function case_uploads_keep_their_place(stream, immediate) {
  const { step } = kernels(stream, immediate);
  const add = over(stream, step, 4);
  const window = new Window().alloc(1, 16).alloc(2, 16);
  window.upload(1, 0, [1, 2, 3, 4]).run(add, [1], [10, 0]); // direct: nothing uses the block yet
  window.copy(1, 2, 0, 0, 16).upload(1, 4, [7, 8]).run(add, [1], [1, 1]); // staged: the commands before it do
  window.submit(stream);
  equal(await words(stream, 2, 4), [10, 20, 30, 40], "before");
  equal(await words(stream, 1, 4), [11, 8, 9, 41], "after");
  equal(stream.stats().passes, 2, "passes");
  equal(stream.stats().submits, 1, "submits");
}

export async function case_an_upload_larger_than_the_staging_splits_the_window(stream, immediate) {
  const count = 100000;
  const add = over(stream, kernels(stream, immediate).step, count);
  const data = Array.from({ length: count }, (_, i) => i);
  const window = new Window().alloc(1, count * 4);
  window.upload(1, 0, data).run(add, [1], [2, 0]);
  window.upload(1, 0, data.slice(0, 90000)).run(add, [1], [3, 1]).submit(stream);
  const found = await words(stream, 1, count);
  equal([found[5], found[89999], found[90000]], [16, 269998, 540001], "words");
  equal(stream.stats().submits, 2, "submits");
}

export async function case_many_staged_uploads(stream, immediate) {
  const add = over(stream, kernels(stream, immediate).step, 64);
  const window = new Window().alloc(1, 256);
  for (let i = 0; i < 3000; i++) window.upload(1, (i % 64) * 4, [i]).run(add, [1], [1, 1]);
  window.submit(stream);
  const found = await words(stream, 1, 64);
  equal([found[2999 % 64], found[(2999 - 63) % 64]], [3000, 3000], "words");
}

export async function case_copies_within_one_slot(stream) {
  new Window().alloc(1, 32).upload(1, 0, [1, 2, 3, 4, 5, 6, 7, 8]).copy(1, 1, 0, 8, 20).submit(stream);
  equal(await words(stream, 1, 8), [1, 2, 1, 2, 3, 4, 5, 8], "words");
  equal(stream.failure(), null, "failure");
}

export async function case_several_reads_in_flight(stream, immediate) {
  const { fill, step } = kernels(stream, immediate);
  const [make, add] = [over(stream, fill, 16), over(stream, step, 16)];
  new Window().alloc(1, 64).run(make, [1], [1, 0]).submit(stream);
  const reads = [words(stream, 1, 16)];
  for (let i = 0; i < 5; i++) {
    new Window().run(add, [1], [1, 1]).submit(stream);
    reads.push(words(stream, 1, 16));
  }
  const found = await Promise.all(reads.reverse());
  equal(
    found.map((one) => one[3]),
    [8, 7, 6, 5, 4, 3],
    "each read sees its own moment",
  );
  new Window().run(add, [1], [1, 0]).free(1).submit(stream);
  equal(stream.stats().live_buffers, 0, "live");
}

export async function case_odd_byte_ranges(stream) {
  const data = Uint8Array.from({ length: 21 }, (_, i) => i + 1);
  stream.write(1, 21, 0, data);
  const { bytes } = await stream.read(1, 3, 10);
  equal(bytes, data.subarray(3, 13), "bytes");
  equal((await stream.read(1, 20, 1)).bytes, [21], "the last byte");
  await fails(() => stream.write(1, 21, 2, data), /multiple of 4/, "an odd offset");
  await fails(() => stream.write(1, 21, 512, data), /do not fit/, "past the end");
  await fails(() => stream.read(1, 250, 10), /do not fit/, "a read past the end");
}

export async function case_large_writes_and_reads(stream) {
  const count = 10 << 20;
  const data = new Uint32Array(count).map((_, i) => Math.imul(i, 2654435761));
  stream.write(1, count * 4, 0, new Uint8Array(data.buffer));
  const found = await words(stream, 1, count);
  for (let i = 0; i < count; i++) if (found[i] !== data[i]) throw new Error(`word ${i}`);
  new Window().free(1).submit(stream);
  stream.trim();
  equal(stream.stats().reserved_bytes, 0, "bytes");
}

export async function case_status_is_reported_once(stream, immediate) {
  const mark = over(stream, kernels(stream, immediate).mark, 5);
  new Window().alloc(1, 16).upload(1, 0, [1, 2, 3, 4]).submit(stream);
  equal((await stream.read(1, 0, 16)).status, new Array(16).fill(0), "before there is a status");
  new Window().alloc(0, 64).upload(0, 0, new Array(16).fill(0)).submit(stream);
  new Window().run(mark, [0], [1, 77]).submit(stream);
  const [first, second] = await Promise.all([stream.read(1, 0, 16), stream.read(1, 0, 16)]);
  equal(first.status.subarray(0, 6), [1, 77, 77, 77, 77, 0], "the first read");
  equal(second.status, new Array(16).fill(0), "the second read");
  equal(new Uint32Array(first.bytes.buffer), [1, 2, 3, 4], "data");
  new Window().run(mark, [0], [1, 78]).submit(stream);
  stream.drop(stream.fetch(1, 0, 16));
  await stream.synchronize();
  equal((await stream.read(1, 0, 16)).status.subarray(0, 2), [1, 78], "a read that was dropped passes it on");
  equal(stream.readback.reads.size, 0, "reads");
}

export async function case_bad_wgsl_is_reported_with_its_line(stream) {
  const source =
    "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1)\nfn main() {\n    out[0] = missing;\n}\n";
  const bad = stream.pipeline(source, "w", 0, false, "softmax/rows");
  const launch = stream.launch(bad, new Uint8Array(0), [], 1, 1, 1);
  new Window().alloc(1, 16).run(launch, [1]).submit(stream);
  await stream.read(1, 0, 4);
  matches(
    stream.failure(),
    /^validation: softmax\/rows: line 4:\d+: .*missing.*\n {4}4 \| {5}out\[0\] = missing;/s,
    "text",
  );
  equal(stream.failure(), null, "it is reported once");
  await fails(
    () => new Window().run(launch, [1]).submit(stream),
    /^softmax\/rows: .*could not be made/,
    "afterwards",
  );
  await fails(
    () => stream.warm(`${source}\n`, "w", 0, false, "warm"),
    /^validation: warm: line 4:/,
    "the asynchronous twin",
  );
}

export async function case_layout_mismatch_names_the_kernel(stream, immediate) {
  const source =
    "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() { out[0] = 1u; }";
  stream.pipeline(source, "r", 0, false, "mismatch");
  await stream.synchronize();
  matches(stream.failure(), /^validation: mismatch: /, "text");
}

export async function case_warm_pipelines_are_the_same_pipelines(stream) {
  const source =
    "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1) fn main() { out[0] = 9u; }";
  const [a, b] = await Promise.all([1, 2].map(() => stream.warm(source, "w", 0, false, "nine")));
  const c = stream.pipeline(source, "w", 0, false, "nine");
  equal([a, b], [c, c], "ids");
  equal(stream.stats().pipelines, 1, "pipelines");
  new Window()
    .alloc(1, 4)
    .run(stream.launch(c, new Uint8Array(0), [], 1, 1, 1), [1])
    .submit(stream);
  equal(await words(stream, 1, 1), [9], "word");
}

export async function case_a_failing_record_leaves_the_rest_in_order(stream, immediate) {
  const { fill } = kernels(stream, immediate);
  const make = over(stream, fill, 4);
  const window = new Window().alloc(1, 16).run(make, [1], [1, 0]);
  window.run(make, [99], [1, 0]).alloc(2, 16).run(make, [2], [1, 5]).copy(1, 2, 0, 4096, 16).free(1);
  await fails(() => window.submit(stream), /^fill: slot 99 does not exist/, "error");
  equal(await words(stream, 2, 4), [5, 6, 7, 8], "the records behind it");
  equal(stream.stats().live_buffers, 1, "live");
  await fails(() => new Window().alloc(2, 16).submit(stream), /^alloc: slot 2 exists already/, "twice");
  new Window().free(1).free(900).submit(stream); // slots that a given-up write never made
  await fails(
    () => stream.submit(Uint32Array.of((4000 << 3) | 0)),
    /launch 4000 was never registered/,
    "unknown launch",
  );
  await fails(() => stream.submit(Uint32Array.of(7)), /record 7/, "unknown record");
  new Window().run(make, [2], [1, 1]).submit(stream);
  equal(await words(stream, 2, 4), [1, 2, 3, 4], "it still works");
  equal(stream.failure(), null, "failure");
}

export async function case_bad_launches_are_refused(stream, immediate) {
  const { fill } = kernels(stream, immediate);
  await fails(
    () => stream.launch(fill, new Uint8Array(8), [], 1, 1, 1),
    /fill: 8 bytes of parameters .* 12/,
    "length",
  );
  await fails(() => stream.launch(fill, new Uint8Array(12), [3], 1, 1, 1), /fill: a patch/, "patch");
  await fails(
    () => stream.launch(fill, new Uint8Array(12), [], 65536, 1, 1),
    /fill: grid \(65536, 1, 1\)/,
    "grid",
  );
  await fails(() => stream.launch(77, new Uint8Array(12), [], 1, 1, 1), /pipeline 77/, "pipeline");
  await fails(() => stream.pipeline("", "rx", 0, false, "x"), /bindings "rx"/, "bindings");
  await fails(() => stream.pipeline("", "r", 1 << 20, false, "x"), /x: 1048576 bytes/, "too many parameters");
}

export async function case_launches_without_patches_keep_their_parameters_apart(stream, immediate) {
  const { step } = kernels(stream, immediate);
  const fixed = (m, c) => stream.launch(step, new Uint8Array(Uint32Array.of(2, m, c).buffer), [], 1, 1, 1);
  const [twice, more] = [fixed(2, 0), fixed(1, 5)];
  const window = new Window().alloc(1, 8).upload(1, 0, [1, 10]);
  for (const launch of [twice, twice, more, more, twice]) window.run(launch, [1]);
  window.submit(stream);
  equal(await words(stream, 1, 2), [28, 100], "words");
}

export async function case_bind_groups_with_one_hash_stay_apart() {
  const made = [];
  const groups = new Groups({ createBindGroup: (description) => made.push(description) }, 1 << 20);
  const layouts = [1, 1].map((id) => ({ id, count: 2, label: "rw", gpu: {} }));
  const [a, b, c] = Array.from({ length: 3 }, () => new Block(7, 256));
  const pairs = [
    [layouts[0], [a, b]],
    [layouts[0], [b, a]],
    [layouts[1], [a, b]],
    [layouts[0], [a, c]],
  ];
  const found = pairs.map(([layout, blocks]) => groups.find(layout, blocks));
  equal(new Set(found).size, 4, "groups");
  equal(
    pairs.map(([layout, blocks]) => groups.find(layout, blocks) === groups.find(layout, blocks)),
    [true, true, true, true],
    "found again",
  );
  equal(made.length, 4, "made");
  groups.forget(b);
  equal(
    [groups.count, groups.find(...pairs[3]) === found[3], made.length],
    [1, true, 4],
    "c does not bind b",
  );
  groups.find(...pairs[0]);
  equal([groups.count, made.length], [2, 5], "made anew");
}

export async function case_parameters_longer_than_a_step_of_the_arena(stream) {
  const fields = Array.from({ length: 80 }, (_, i) => `p${i}: vec4<u32>,`).join(" ");
  const source = `struct Params { ${fields} }
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;
@compute @workgroup_size(1) fn main() { out[0] = params.p0.x; out[1] = params.p79.w; }`;
  const pipeline = stream.pipeline(source, "w", 1280, false, "long");
  const params = new Uint8Array(new Uint32Array(320).map((_, i) => i + 1).buffer);
  const launch = stream.launch(pipeline, params, [0], 1, 1, 1);
  const window = new Window();
  for (let slot = 1; slot <= 300; slot++) window.alloc(slot, 8).run(launch, [slot], [slot * 10]);
  window.submit(stream);
  equal(await words(stream, 1, 2), [10, 320], "first");
  equal(await words(stream, 300, 2), [3000, 320], "last");
  equal(stream.failure(), null, "failure");
  equal(stream.stats().submits, 2, "submits: 204 launches fill the arena");
}

export async function case_a_lost_device_is_named(stream, immediate) {
  const make = over(stream, kernels(stream, immediate).fill, 4);
  new Window().alloc(1, 16).run(make, [1], [1, 0]).submit(stream);
  stream.device.destroy();
  await fails(() => stream.read(1, 0, 16), /^lost: /, "read");
  await fails(() => stream.synchronize(), /^lost: /, "synchronize");
  await fails(() => new Window().run(make, [1], [1, 0]).submit(stream), /^lost: /, "submit");
  matches(stream.failure(), /^lost: /, "failure");
}

export async function case_a_closed_stream_says_so(stream) {
  stream.close();
  await fails(() => stream.read(1, 0, 4), /^closed: /, "read");
  await fails(() => stream.submit(Uint32Array.of()), /^closed: /, "submit");
  equal(stream.failure(), null, "closing is no failure");
}

export async function case_closing_ends_the_reads_in_flight(stream) {
  stream.write(1, 16, 0, new Uint8Array(16));
  const reads = [stream.read(1, 0, 16), stream.synchronize()];
  stream.close();
  for (const read of reads) await fails(() => read, /^closed: /, "read");
}

export async function case_reads_arrive_while_the_queue_is_nudged(stream, immediate) {
  const make = over(stream, kernels(stream, immediate).fill, 16);
  let nudges = 0;
  const { queue } = stream;
  const nudged = {
    submit: (list) => (nudges++, queue.submit(list)),
    onSubmittedWorkDone: () => queue.onSubmittedWorkDone(),
  };
  stream.readback.nudges = true; // as in Firefox
  stream.readback.device = new Proxy(stream.device, {
    get: (device, name) => {
      if (name === "queue") return nudged;
      return typeof device[name] === "function" ? device[name].bind(device) : device[name];
    },
  });
  new Window().alloc(1, 64).run(make, [1], [2, 1]).submit(stream);
  equal(
    await words(stream, 1, 16),
    Array.from({ length: 16 }, (_, i) => 2 * i + 1),
    "words",
  );
  const slow = new Promise((resolve) => setTimeout(resolve, 50));
  nudges = 0;
  await stream.readback.finished(slow);
  if (nudges < 5 || nudges > 60) throw new Error(`${nudges} nudges in 50 ms`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const after = nudges;
  await new Promise((resolve) => setTimeout(resolve, 20));
  equal(nudges, after, "they end with the wait");
}

export async function case_an_uncaptured_error_is_collected(stream) {
  stream.device.createBuffer({ size: 16, usage: 0xffff });
  await stream.synchronize();
  matches(stream.failure(), /^validation: /, "text");
}

export async function case_out_of_memory_is_named(stream) {
  const limit = stream.info.limits.maxBufferSize;
  await fails(
    () => stream.write(1, limit + 4, 0, new Uint8Array(4)),
    /exceeds this device's limit maxBufferSize/,
    "limit",
  );
  const create = stream.device.createBuffer;
  // Real exhaustion would take the machine with it; a buffer too large for the device raises the scope's other kind.
  const popped = stream.device.popErrorScope;
  stream.device.popErrorScope = async function () {
    await popped.call(stream.device);
    return new GPUOutOfMemoryError("not enough memory left");
  };
  stream.write(2, 1 << 20, 0, new Uint8Array(4));
  delete stream.device.popErrorScope;
  await stream.synchronize();
  matches(stream.failure(), /^out of memory: a buffer of 1048576 bytes: not enough/, "text");
  new Window().free(2).submit(stream);
  equal(stream.stats().pooled_bytes, 1 << 20, "the broken block waits");
  stream.write(3, 1 << 20, 0, new Uint8Array(4));
  equal(stream.slots.block(3).broken, false, "and is never used again");
  equal(stream.stats().reserved_bytes, 1 << 20, "bytes");
  equal(create, stream.device.createBuffer, "the device is as it was");
}

export async function case_bind_groups_are_cached_and_dropped(stream, immediate) {
  const { join, fill } = kernels(stream, immediate);
  const [add, make] = [over(stream, join, 64), over(stream, fill, 64)];
  const window = new Window();
  for (let slot = 1; slot <= 4; slot++) window.alloc(slot, 256).run(make, [slot], [1, slot]);
  for (let round = 0; round < 50; round++) {
    for (let slot = 1; slot <= 3; slot++) window.run(add, [slot, slot === 3 ? 1 : 3, 4], [1, 0]);
  }
  window.submit(stream);
  equal(stream.stats().bind_groups, 4 + 3, "made");
  new Window().free(1).free(2).free(3).free(4).submit(stream);
  stream.trim();
  equal(stream.stats().cached_bind_groups, 0, "left");
  equal(stream.stats().reserved_bytes, 0, "bytes");
  await stream.synchronize();
  equal(stream.failure(), null, "failure");
}

export async function case_a_hundred_thousand_dispatches_leave_nothing(stream, immediate) {
  const { fill, join } = kernels(stream, immediate);
  const [make, add] = [over(stream, fill, 64), over(stream, join, 64)];
  new Window().alloc(1, 256).run(make, [1], [0, 1]).submit(stream);
  let before = null;
  let current = 1;
  for (let round = 0; round < 100; round++) {
    const window = new Window();
    for (let i = 0; i < 1000; i++) {
      const next = 2 + ((current - 1) % 1000);
      window.alloc(next, 256).run(add, [current, current, next], [0, 1]).free(current);
      current = next;
    }
    window.submit(stream);
    if (round % 10 === 9) await stream.synchronize();
    const { live_buffers, reserved_bytes, bind_groups } = stream.stats();
    before ??= { live_buffers, reserved_bytes, bind_groups };
    equal({ live_buffers, reserved_bytes, bind_groups }, before, `round ${round}`);
  }
  equal(stream.stats().dispatches, 100001, "dispatches");
  equal(before.live_buffers, 1, "live");
  equal(stream.failure(), null, "failure");
}

/** Random windows against a model: a Map from slot to its words. */
export async function case_random_windows_equal_the_model(stream, immediate) {
  const { fill, join, step } = kernels(stream, immediate);
  const sizes = [1, 5, 64, 100, 700];
  const launches = Object.fromEntries(
    sizes.map((n) => [
      n,
      { fill: over(stream, fill, n), join: over(stream, join, n), step: over(stream, step, n) },
    ]),
  );
  const below = random(20240817);
  const model = new Map();
  const idle = Array.from({ length: 24 }, (_, i) => 24 - i);
  const pick = (n) => {
    const fitting = [...model.keys()].filter((slot) => n === undefined || model.get(slot).length === n);
    return fitting[below(fitting.length)];
  };
  const create = (window, n) => {
    const slot = idle.splice(below(idle.length), 1)[0];
    window.alloc(slot, n * 4);
    return slot;
  };
  for (let round = 0; round < 150; round++) {
    const window = new Window();
    for (let record = below(60); record >= 0; record--) {
      const [m, c] = [below(1000), below(1 << 30)];
      const action = model.size === 0 ? 0 : below(9);
      if (action <= 1 && idle.length > 0) {
        const n = sizes[below(sizes.length)];
        const slot = create(window, n);
        if (action === 0) {
          window.run(launches[n].fill, [slot], [m, c]);
          model.set(
            slot,
            Uint32Array.from({ length: n }, (_, i) => i * m + c),
          );
        } else {
          const data = Uint32Array.from({ length: n }, () => below(1 << 30));
          window.upload(slot, 0, data);
          model.set(slot, data);
        }
      } else if (action <= 3 && idle.length > 0) {
        const a = pick();
        const n = model.get(a).length;
        const b = pick(n);
        const slot = create(window, n);
        window.run(launches[n].join, [a, b, slot], [m, c]);
        const [x, y] = [model.get(a), model.get(b)];
        model.set(
          slot,
          x.map((value, i) => Math.imul(value, m) + y[i] + c),
        );
      } else if (action === 4) {
        const slot = pick();
        const data = model.get(slot);
        window.run(launches[data.length].step, [slot], [m, c]);
        model.set(
          slot,
          data.map((value) => Math.imul(value, m) + c),
        );
      } else if (action === 5) {
        const slot = pick();
        const data = model.get(slot).slice();
        const begin = below(data.length);
        const part = Uint32Array.from({ length: 1 + below(data.length - begin) }, () => below(1 << 30));
        window.upload(slot, begin * 4, part);
        data.set(part, begin);
        model.set(slot, data);
      } else if (action === 6) {
        const [a, b] = [pick(), pick()];
        const count = 1 + below(Math.min(model.get(a).length, model.get(b).length));
        const begin = below(model.get(a).length - count + 1);
        const target = below(model.get(b).length - count + 1);
        window.copy(a, b, begin * 4, target * 4, count * 4);
        const data = model.get(b).slice();
        data.set(model.get(a).slice(begin, begin + count), target);
        model.set(b, data);
      } else {
        const slot = pick();
        window.free(slot);
        model.delete(slot);
        idle.push(slot);
      }
    }
    window.submit(stream);
    if (model.size > 0 && below(3) === 0) {
      const slot = pick();
      equal(
        await words(stream, slot, model.get(slot).length),
        model.get(slot),
        `round ${round}, slot ${slot}`,
      );
    }
    if (below(20) === 0) stream.trim();
  }
  const window = new Window();
  for (const [slot, data] of model) {
    equal(await words(stream, slot, data.length), data, `slot ${slot} at the end`);
    window.free(slot);
  }
  window.submit(stream);
  equal(stream.stats().live_buffers, 0, "live");
  equal(stream.failure(), null, "failure");
}

export async function case_info_is_plain_data(stream, immediate) {
  equal(structuredClone(stream.info), stream.info, "info");
  equal(stream.info.host, "browser", "host");
  equal(stream.info.immediates > 0, immediate, "immediates");
  if (!immediate)
    equal([stream.info.features, stream.info.limits.maxStorageBuffersPerShaderStage], [[], 8], "defaults");
}

export async function case_pool_sizes_and_ages() {
  const sizes = [0, 1, 256, 257, 320, 321, 511, 513, 1000, 65537, 1 << 20, (1 << 20) + 1, 3000000000];
  const expected = [256, 256, 256, 320, 320, 384, 512, 640, 1024, 81920, 1 << 20, (1 << 20) + (256 << 10)];
  equal(sizes.map(blockBytes), [...expected, Math.ceil(3000000000 / 262144) * 262144], "block sizes");
  const destroyed = [];
  const pool = new Pool({
    create: (block) => ({ destroy: () => destroyed.push(block.id) }),
    forget: () => {},
    largest: 2 ** 31 - 4,
    keptFloor: 1000,
  });
  const blocks = [256, 512, 256, 512].map((bytes) => pool.take(bytes));
  for (const block of [blocks[1], blocks[0], blocks[3], blocks[2]]) pool.give(block);
  equal(pool.take(256), blocks[2], "the newest of its size");
  pool.give(blocks[2]);
  pool.settle();
  equal(destroyed, [2, 1], "the oldest go until the cap is met");
  equal([pool.pooledBytes, pool.liveBytes, pool.liveBlocks], [768, 0, 0], "accounts");
  pool.trim();
  equal(destroyed, [2, 1, 4, 3], "in order of age");
  equal(pool.take(2 ** 31 - 4).bytes, 2 ** 31 - 4, "a block never exceeds the device's limit");
  await fails(() => pool.take(2 ** 31), /exceeds this device's limit/, "limit");
}

/** One case by name: opens its stream, runs it, closes it. */
export async function runCase(name, defaultLimits) {
  const cases = await import(import.meta.url);
  const stream = await Stream.open({ defaultLimits });
  try {
    await cases[name](stream, !defaultLimits);
  } finally {
    stream.close();
  }
}
