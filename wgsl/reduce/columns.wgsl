// out[o, p, i] = apply(x[o, r, i] for r in part p)
//   by default a sum; divided by `divisor` with MEAN
//
// x     (outer, reduced, inner)   contiguous
// out   (outer, parts, inner)     part p holds r from p * chunk to (p + 1) * chunk
// grid  one workgroup per WORKGROUP outputs, one lane each: neighbours in `inner` read
//       neighbouring words; a lane keeps four sums, so that four loads are under way at once
// fuses x -> out
// turns chunk // 4 + 4

alias T = f32;
const WORKGROUP = 64u;
const IDENTITY = T(0);
const MEAN = false;

struct Params {
    x_offset: u32,
    outputs: u32,
    reduced: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
    divisor: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn average(value: T, count: u32) -> T { return value / T(count); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let output = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (output >= params.outputs) {
        return;
    }
    let inner = output % params.inner;
    let part = (output / params.inner) % params.parts;
    let outer = output / (params.inner * params.parts);
    let base = outer * params.reduced * params.inner + inner;
    let end = min((part + 1u) * params.chunk, params.reduced);
    var r = part * params.chunk;
    var a = IDENTITY;
    var b = IDENTITY;
    var c = IDENTITY;
    var d = IDENTITY;
    for (; r + 3u < end; r += 4u) {
        a = apply(a, load_x(base + r * params.inner));
        b = apply(b, load_x(base + (r + 1u) * params.inner));
        c = apply(c, load_x(base + (r + 2u) * params.inner));
        d = apply(d, load_x(base + (r + 3u) * params.inner));
    }
    for (; r < end; r++) {
        a = apply(a, load_x(base + r * params.inner));
    }
    var value = apply(apply(a, b), apply(c, d));
    if (MEAN) {
        value = average(value, params.divisor);
    }
    store_out(output, value);
}
