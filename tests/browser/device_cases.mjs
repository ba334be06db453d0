// The device behind the windows: pipelines, reads, errors, loss, memory. Each case gets a fresh stream; `immediate` says
// how its parameters travel.

import { Groups } from "/web/runtime/groups.js";
import { Block, blockBytes, Pool } from "/web/runtime/pool.js";
import { Window, equal, fails, kernels, matches, over, words } from "./stream_window.mjs";

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

export async function case_large_writes_through_mapped_buffers(stream) {
  // Five and a bit of the buffers' sizes, then more than all of them, which are not free at once.
  const count = (22 << 18) + 3;
  const data = new Uint32Array(count).map((_, i) => Math.imul(i, 2654435761));
  stream.uploads.useMapped();
  for (const rounds of [1, 3]) {
    for (let k = 0; k < rounds; k++) {
      data[k] = k + 1;
      stream.write(1 + k, count * 4, 0, new Uint8Array(data.buffer));
    }
    for (let k = 0; k < rounds; k++) {
      const found = await words(stream, 1 + k, count);
      equal(found[k], k + 1, `write ${k}`);
      for (let i = rounds; i < count; i++) if (found[i] !== data[i]) throw new Error(`word ${i}`);
      new Window().free(1 + k).submit(stream);
    }
    await stream.uploads.ready();
  }
  equal(stream.uploads.made, 8, "buffers");
  equal(stream.uploads.idle.length, 8, "free ones");
  stream.trim();
  equal(stream.uploads.made, 0, "buffers in the end");
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

export async function case_a_read_without_a_window_is_a_copy_alone(stream, immediate) {
  const mark = over(stream, kernels(stream, immediate).mark, 5);
  new Window()
    .alloc(1, 16)
    .upload(1, 0, [1, 2, 3, 4])
    .alloc(0, 64)
    .upload(0, 0, new Array(16).fill(0))
    .submit(stream);
  await stream.synchronize();
  const scopes = [];
  const { open } = stream.faults;
  stream.faults.open = (filter) => (scopes.push(filter), open.call(stream.faults, filter));
  await stream.read(1, 0, 16);
  const size = stream.readback.idle[0].size;
  equal(scopes, [], "the copy is not watched");
  equal((await words(stream, 1, 4)).slice(1), [2, 3, 4], "words");
  equal([stream.readback.idle.length, stream.readback.idle[0].size], [1, size], "one buffer serves both");
  new Window().run(mark, [0], [1, 77]).submit(stream, true);
  equal(
    (await stream.read(1, 0, 16)).status.subarray(0, 2),
    [1, 77],
    "behind a window it takes the status along",
  );
  equal(scopes, ["validation"], "which is watched");
  equal((await stream.read(1, 0, 16)).status, new Array(16).fill(0), "once");
  new Window().run(mark, [0], [1, 78]).submit(stream);
  const dropped = stream.fetch(1, 0, 16);
  stream.drop(dropped);
  equal(
    (await stream.read(1, 0, 4)).status.subarray(0, 2),
    [1, 78],
    "one without tells what a dropped one brought",
  );
}

export async function case_bad_wgsl_is_reported_with_its_line(stream) {
  const source =
    "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(1)\nfn main() {\n    out[0] = missing;\n}\n";
  const bad = stream.pipeline(source, "w", 0, false, "norm/softmax_rows");
  const launch = stream.launch(bad, new Uint8Array(0), [], 1, 1, 1);
  new Window().alloc(1, 16).run(launch, [1]).submit(stream);
  await stream.read(1, 0, 4);
  matches(
    stream.failure(),
    /^validation: norm\/softmax_rows: line 4:\d+: .*missing.*\n {4}4 \| {5}out\[0\] = missing;/s,
    "text",
  );
  equal(stream.failure(), null, "it is reported once");
  await fails(
    () => new Window().run(launch, [1]).submit(stream),
    /^norm\/softmax_rows: .*could not be made/,
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

/** A device whose nudges are counted. */
function counting(device, count) {
  return {
    queue: { submit: (list) => (count(), device.queue.submit(list)) },
    pushErrorScope: (filter) => device.pushErrorScope(filter),
    popErrorScope: () => device.popErrorScope(),
  };
}

export async function case_a_nudge_waits_until_the_last_one_was_taken_in(stream) {
  const { nudger } = stream.readback;
  const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  let underWay = 0;
  let most = 0;
  nudger.device = {
    queue: { submit: () => (most = Math.max(most, ++underWay)) },
    pushErrorScope: () => {},
    popErrorScope: () => after(8).then(() => void underWay--),
  };
  await Promise.all([5, 15, 30].map((ms) => after(ms).then(() => stream.readback.finished(after(20)))));
  equal(most, 1, "nudges at once");
}

export async function case_the_queue_is_nudged_while_something_is_awaited(stream, immediate) {
  const make = over(stream, kernels(stream, immediate).fill, 16);
  let nudges = 0;
  const { nudger } = stream.readback;
  const { device } = nudger;
  nudger.device = counting(device, () => nudges++);
  new Window().alloc(1, 64).run(make, [1], [2, 1]).submit(stream);
  equal(
    await words(stream, 1, 16),
    Array.from({ length: 16 }, (_, i) => 2 * i + 1),
    "words",
  );
  const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  nudges = 0;
  await Promise.all([stream.readback.finished(after(50)), stream.readback.finished(after(20))]);
  // Every 0.1 ms at first, then every 16th part of what was waited: about 60; fewer on a busy machine.
  if (nudges < 8 || nudges > 120) throw new Error(`${nudges} nudges in 50 ms`);
  await after(20);
  const before = nudges;
  await after(20);
  equal(nudges, before, "they end with the wait");
}

export async function case_what_is_done_at_once_is_not_nudged(stream) {
  const { nudger } = stream.readback;
  let nudges = 0;
  nudger.device = counting(nudger.device, () => nudges++);
  for (let i = 0; i < 1000; i++) await stream.readback.finished(Promise.resolve());
  equal(nudges, 0, "nudges");
}

export async function case_what_is_known_to_be_done_is_nudged_later(stream, immediate) {
  const make = over(stream, kernels(stream, immediate).fill, 16);
  const { nudger } = stream.readback;
  const asked = [];
  const watch = nudger.watch.bind(nudger);
  nudger.watch = (promise, isDone) => (asked.push(isDone), watch(promise, isDone));
  new Window().alloc(1, 64).run(make, [1], [2, 1]).submit(stream);
  await words(stream, 1, 16);
  await words(stream, 1, 16);
  stream.write(1, 64, 0, new Uint8Array(4));
  await words(stream, 1, 16);
  await stream.synchronize();
  new Window().run(make, [1], [2, 1]).submit(stream);
  await stream.synchronize();
  await words(stream, 1, 16);
  equal(asked, [false, true, false, true, false, true], "is known to be done");
}

export async function case_a_new_wait_is_nudged_soon_while_a_long_one_goes_on(stream) {
  const { nudger } = stream.readback;
  const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const long = stream.readback.finished(after(120));
  await after(60); // by now the nudges are milliseconds apart
  const short = stream.readback.finished(after(20));
  await null;
  const soon = nudger.wakes - performance.now();
  const rounding = 1e-6; // of a time in milliseconds since the page was opened
  if (soon > nudger.first + rounding) throw new Error(`the first nudge comes in ${soon} ms`);
  equal(nudger.waiting, 2, "waits");
  await Promise.all([long, short]);
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
  new Window().alloc(4, 1 << 19).upload(4, 0, [1]).free(4).submit(stream);
  equal(stream.stats().pooled_bytes, 1 << 19, "a free block");
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
  equal(stream.stats().pooled_bytes, 0, "free blocks are given back");
  new Window().free(2).submit(stream);
  equal(stream.stats().pooled_bytes, 1 << 20, "the broken block waits");
  stream.write(3, 1 << 20, 0, new Uint8Array(4));
  equal(stream.slots.block(3).broken, false, "and is never used again");
  equal(stream.stats().reserved_bytes, 1 << 20, "bytes");
  equal(create, stream.device.createBuffer, "the device is as it was");
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
  const expected = [256, 256, 256, 512, 512, 512, 512, 768, 1024, 69632, 1 << 20, (1 << 20) + (64 << 10)];
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
  equal(pool.take(256), blocks[0], "the first of its size");
  pool.give(blocks[0]);
  for (let submission = 0; submission < 64; submission++) pool.settle();
  equal(destroyed, [], "the last submissions needed them");
  pool.settle();
  equal(destroyed, [2, 4], "the oldest go until the cap is met");
  equal([pool.pooledBytes, pool.liveBytes, pool.liveBlocks], [512, 0, 0], "accounts");
  pool.trim();
  equal(destroyed, [2, 4, 3, 1], "in order of age");
  equal(pool.take(2 ** 31 - 4).bytes, 2 ** 31 - 4, "a block never exceeds the device's limit");
  await fails(() => pool.take(2 ** 31), /exceeds this device's limit/, "limit");
}

export async function case_dispatches_are_timed_each_in_its_own_pass(stream, immediate) {
  const { fill, step } = kernels(stream, immediate);
  const [make, add] = [over(stream, fill, 1 << 16), over(stream, step, 1 << 16)];
  new Window()
    .alloc(1, 1 << 18)
    .run(make, [1], [1, 0])
    .run(add, [1], [1, 1])
    .submit(stream);
  equal([stream.stats().passes, (await stream.times()).length], [1, 0], "nothing is timed at first");
  const can = stream.info.features.includes("timestamp-query");
  equal(stream.time(true), can, "whether the device can");
  if (!can) {
    new Window().run(add, [1], [1, 1]).submit(stream);
    new Window().run(add, [1], [1, 1]).submit(stream);
    const times = await stream.times();
    equal([times.length, times[0], times[3], stream.stats().passes], [6, -1, -1, 3], "windows");
    if (!(times[1] < times[2] && times[1] < times[4] && times[2] <= times[5])) throw new Error("order");
    stream.time(false);
    new Window().run(add, [1], [1, 1]).submit(stream);
    equal((await stream.times()).length, 0, "windows when it is off again");
    return;
  }
  const window = new Window();
  for (let i = 0; i < 1500; i++) window.run(add, [1], [1, 1]); // more than one submission holds
  window.submit(stream);
  new Window().run(make, [1], [1, 5]).submit(stream);
  equal(stream.stats().passes, 1 + 1501, "passes");
  const times = await stream.times();
  equal(times.length, 3 * 1501, "dispatches");
  for (let i = 0; i < 1501; i++) {
    equal(times[3 * i], i < 1500 ? add : make, `launch ${i}`);
    if (times[3 * i + 1] > times[3 * i + 2]) throw new Error(`dispatch ${i} ends before it begins`);
  }
  if (!(times.at(-1) > times[1])) throw new Error("no time passed");
  equal((await stream.times()).length, 0, "times are given once");
  stream.time(false);
  new Window().run(add, [1], [1, 1]).run(add, [1], [1, 1]).submit(stream);
  equal([stream.stats().passes, (await stream.times()).length], [1503, 0], "passes when it is off again");
  equal((await words(stream, 1, 2))[1], 8, "what was computed meanwhile");
  equal(stream.failure(), null, "failure");
}

export async function case_a_launch_that_fails_has_no_time(stream, immediate) {
  const { fill } = kernels(stream, immediate);
  const make = over(stream, fill, 4);
  if (!stream.time(true)) return;
  const bad = stream.launch(stream.pipeline("fn main(", "w", 0, false, "bad"), new Uint8Array(0), [], 1, 1, 1);
  await stream.synchronize();
  stream.failure();
  const window = new Window().alloc(1, 16).alloc(2, 16).run(bad, [1]).copy(1, 2, 0, 0, 16).run(make, [1], [1, 5]);
  await fails(() => window.submit(stream), /bad: its pipeline could not be made/, "the window");
  const times = await stream.times();
  equal([times.length, times[0]], [3, make], "what was timed");
  equal((await words(stream, 1, 2))[1], 6, "what ran");
  equal(stream.failure(), null, "failure");
}
