// What a window of records means. Each case gets a fresh stream; `immediate` says how its parameters travel.

import { Window, equal, fails, kernels, matches, over, random, source, words } from "./stream_window.mjs";

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
  equal(stream.stats().submits, 3, "submits: the window, two reads");
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
  equal(stream.stats().submits, 3, "submits: two for the window, a read");
}

export async function case_a_window_that_is_held_goes_out_with_the_read(stream, immediate) {
  const add = over(stream, kernels(stream, immediate).step, 4);
  new Window().alloc(1, 16).upload(1, 0, [1, 2, 3, 4]).run(add, [1], [10, 0]).submit(stream, true);
  equal(stream.stats().submits, 0, "submits before the read");
  equal(await words(stream, 1, 4), [10, 20, 30, 40], "words");
  equal(stream.stats().submits, 1, "submits");
  new Window().run(add, [1], [1, 1]).submit(stream, true);
  await fails(async () => stream.fetch(7, 0, 4), /7/, "a read of what is not there");
  equal(stream.stats().submits, 2, "submits with the read that failed");
  new Window().run(add, [1], [1, 1]).submit(stream, true);
  await stream.synchronize();
  equal(stream.stats().submits, 3, "submits with a wait");
  equal(await words(stream, 1, 4), [12, 22, 32, 42], "words in the end");
}

export async function case_a_held_window_is_not_overtaken(stream) {
  // Its read never comes, and a block that it reads and frees is taken by what is written next.
  stream.write(1, 16, 0, new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]));
  new Window().alloc(2, 16).copy(1, 2, 0, 0, 16).free(1).submit(stream, true);
  stream.write(3, 16, 0, new Uint8Array(16));
  equal((await stream.read(2, 0, 4)).bytes, [1, 2, 3, 4], "bytes");
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

export async function case_launches_without_patches_keep_their_parameters_apart(stream, immediate) {
  const { step } = kernels(stream, immediate);
  const fixed = (m, c) => stream.launch(step, new Uint8Array(Uint32Array.of(2, m, c).buffer), [], 1, 1, 1);
  const [twice, more] = [fixed(2, 0), fixed(1, 5)];
  const window = new Window().alloc(1, 8).upload(1, 0, [1, 10]);
  for (const launch of [twice, twice, more, more, twice]) window.run(launch, [1]);
  window.submit(stream);
  equal(await words(stream, 1, 2), [28, 100], "words");
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
  equal(stream.stats().submits, 4, "submits: 204 launches fill the arena, so two, and two reads");
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

/** A pipeline of `kernels` that is compiled when `release` is called, and not before. */
function compiledLater(stream, immediate, label, body) {
  const { device } = stream;
  const make = device.createComputePipelineAsync;
  let release;
  const released = new Promise((resolve) => (release = resolve));
  device.createComputePipelineAsync = async (descriptor) => {
    await released;
    return make.call(device, descriptor);
  };
  const id = stream.pipelineLater(source(immediate, [["x", "read_write"]], body), "w", 12, immediate, label);
  delete device.createComputePipelineAsync;
  return { id, release };
}

export async function case_windows_wait_for_a_pipeline(stream, immediate) {
  const { fill } = kernels(stream, immediate);
  const { id, release } = compiledLater(stream, immediate, "later", "x[i] = params.m * x[i] + params.c;");
  const [make, step] = [over(stream, fill, 4), over(stream, id, 4)];
  equal([stream.compiled([make]), stream.compiled([make, step])], [true, false], "compiled before");
  const before = stream.stats().dispatches;
  new Window().alloc(1, 16).run(make, [1], [1, 1]).run(step, [1], [10, 0]).submit(stream);
  const first = stream.fetch(1, 0, 16); // 10 20 30 40
  // All that follows keeps its place: a slot that is given out again, a write, an error, a held window, a read.
  new Window().free(1).submit(stream);
  stream.write(1, 16, 0, new Uint8Array(Uint32Array.of(1, 2, 3, 4).buffer));
  new Window().run(make, [77], [1, 1]).run(step, [1], [2, 5]).submit(stream);
  new Window().run(step, [1], [1, 1]).submit(stream, true);
  const second = stream.fetch(1, 0, 16); // 8 10 12 14
  const wrong = stream.fetch(9, 0, 4);
  const dropped = stream.fetch(1, 0, 4);
  stream.drop(dropped);
  equal(stream.stats().dispatches - before, 1, "dispatches before");
  release();
  await stream.synchronize();
  equal(stream.stats().dispatches - before, 4, "dispatches after");
  const bytes = new Uint8Array(16);
  for (const [ticket, expected] of [
    [first, [10, 20, 30, 40]],
    [second, [8, 10, 12, 14]],
  ]) {
    await stream.arrival(ticket);
    stream.take(ticket, bytes, new Uint32Array(16));
    equal(new Uint32Array(bytes.buffer), expected, "read");
  }
  await stream.arrival(wrong);
  await fails(async () => stream.take(wrong, bytes, new Uint32Array(16)), /slot 9 does not exist/, "a bad read");
  matches(stream.failure(), /slot 77 does not exist/, "failure");
  equal(stream.compiled([make, step]), true, "compiled after");
  equal(stream.readback.reads.size, 0, "reads");
}

export async function case_a_pipeline_that_cannot_be_compiled_is_told_by_name(stream, immediate) {
  const { id, release } = compiledLater(stream, immediate, "bad", "x[i] = nonsense;");
  const step = over(stream, id, 4);
  new Window().alloc(1, 16).upload(1, 0, [1, 2, 3, 4]).run(step, [1], [1, 1]).submit(stream);
  release();
  equal(await words(stream, 1, 4), [1, 2, 3, 4], "what was there");
  matches(stream.failure(), /^validation: bad: line \d+:\d+: .*nonsense/, "failure");
}

export async function case_much_that_waits_goes_on_at_once(stream, immediate) {
  const { id, release } = compiledLater(stream, immediate, "later", "x[i] = params.m * x[i] + params.c;");
  const step = over(stream, id, 4);
  new Window().alloc(1, 16).upload(1, 0, [1, 2, 3, 4]).run(step, [1], [1, 1]).submit(stream);
  stream.write(2, 80 << 20, 0, new Uint8Array(80 << 20));
  equal(await words(stream, 1, 4), [2, 3, 4, 5], "without the pipeline that is compiled beside");
  release();
  new Window().run(step, [1], [1, 1]).submit(stream);
  equal(await words(stream, 1, 4), [3, 4, 5, 6], "with it");
  equal(stream.failure(), null, "failure");
}

export async function case_closing_ends_reads_that_wait(stream, immediate) {
  const { id, release } = compiledLater(stream, immediate, "later", "x[i] = params.m * x[i] + params.c;");
  new Window().alloc(1, 16).run(over(stream, id, 4), [1], [1, 1]).submit(stream);
  const ticket = stream.fetch(1, 0, 16);
  const waiting = stream.arrival(ticket);
  const done = stream.synchronize().catch((error) => error.message);
  stream.close();
  await waiting;
  matches(await done, /closed/, "synchronize");
  release();
}

export async function case_what_waits_keeps_its_status_and_its_pipelines(stream, immediate) {
  const { mark } = kernels(stream, immediate);
  const body = "x[i] = params.m * x[i] + params.c;";
  const { id, release } = compiledLater(stream, immediate, "later", body);
  const [step, note] = [over(stream, id, 4), over(stream, mark, 16)];
  new Window().alloc(0, 64).alloc(1, 16).upload(0, 0, new Array(16).fill(0)).submit(stream);
  await words(stream, 1, 4);
  new Window().run(step, [1], [1, 1]).submit(stream);
  const first = stream.fetch(1, 0, 16);
  new Window().run(note, [0], [1, 7]).submit(stream);
  const second = stream.fetch(1, 0, 16);
  // A pipeline that ends meanwhile is made anew, with an id of its own.
  stream.forget([], [id]);
  const names = [["x", "read_write"]];
  const again = stream.pipelineLater(source(immediate, names, body), "w", 12, immediate, "later");
  const other = stream.pipelineLater(source(immediate, names, `${body} x[i] += 1u;`), "w", 12, immediate, "other");
  equal(again === other, false, "one id for two");
  release();
  await stream.synchronize();
  const said = [];
  for (const ticket of [first, second]) {
    const status = new Uint32Array(16);
    await stream.arrival(ticket);
    stream.take(ticket, new Uint8Array(16), status);
    said.push(status[0]);
  }
  equal(said, [0, 1], "status of the reads");
}

export async function case_a_compact_form_serves_until_the_full_one_is_compiled(stream, immediate) {
  const { device } = stream;
  const make = device.createComputePipelineAsync;
  let release;
  const released = new Promise((resolve) => (release = resolve));
  let count = 0;
  device.createComputePipelineAsync = async (descriptor) => {
    if (++count > 1) await released;
    return make.call(device, descriptor);
  };
  // Their results differ, so that it shows which of them ran.
  const names = [["x", "read_write"]];
  const [full, compact] = [2, 1].map((value) => source(immediate, names, `x[i] = ${value}u;`));
  const id = stream.pipelineLater(full, "w", 12, immediate, "forms", compact);
  const step = over(stream, id, 4);
  new Window().alloc(1, 16).upload(1, 0, [0, 0, 0, 0]).run(step, [1], [0, 0]).submit(stream);
  equal(await words(stream, 1, 4), [1, 1, 1, 1], "the compact form");
  equal(stream.stats().compiling, 1, "compiling before");
  equal(stream.pipelineLater(full, "w", 12, immediate, "forms", compact), id, "id");
  release();
  while (stream.stats().compiling > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  new Window().run(step, [1], [0, 0]).submit(stream);
  equal(await words(stream, 1, 4), [2, 2, 2, 2], "the full form");
  // A full form that is broken is reported, and the compact one stays.
  const broken = stream.pipelineLater("fn main(", "w", 12, immediate, "broken", source(immediate, names, "x[i] = 3u;"));
  const last = over(stream, broken, 4);
  new Window().run(last, [1], [0, 0]).submit(stream);
  equal(await words(stream, 1, 4), [3, 3, 3, 3], "beside a broken one");
  while (stream.stats().compiling > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await stream.synchronize();
  equal(stream.failure()?.startsWith("validation: broken"), true, "failure");
  new Window().run(last, [1], [0, 0]).submit(stream);
  equal(await words(stream, 1, 4), [3, 3, 3, 3], "after it");
  delete device.createComputePipelineAsync;
}

export async function case_calls_do_not_wait_for_ever(stream, immediate) {
  const { id, release } = compiledLater(stream, immediate, "later", "x[i] = params.m * x[i] + params.c;");
  const step = over(stream, id, 4);
  new Window().alloc(1, 16).upload(1, 0, [1, 2, 3, 4]).run(step, [1], [2, 0]).submit(stream);
  const before = stream.stats().dispatches;
  stream.backlog.since -= 5000;
  new Window().run(step, [1], [1, 1]).submit(stream);
  equal(stream.stats().dispatches - before, 2, "dispatches");
  equal(await words(stream, 1, 4), [3, 5, 7, 9], "words");
  release();
}
