// out[o, p, i] = result(apply(entry(x[o, r, i]) for r in part p))
//   by default a sum; divided by `divisor` with MEAN
//
// x     (outer, reduced, inner)   contiguous
// out   (outer, parts, inner)     part p holds r from p * chunk to (p + 1) * chunk
// grid  one workgroup per WORKGROUP outputs, one lane each: neighbours in `inner` read
//       neighbouring words; a lane keeps four sums, so that four loads are under way at once
// fuses x -> out
// turns chunk // 4 + 4

alias X = f32;
alias T = f32;
alias U = f32;
const WORKGROUP = 64u;
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

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> out: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn store_out(i: u32, value: U) { out[i] = value; }
fn entry(value: X) -> T { return value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn result(value: T) -> U { return value; }
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
    var a = identity();
    var b = identity();
    var c = identity();
    var d = identity();
    for (; r + 3u < end; r += 4u) {
        a = apply(a, entry(load_x(base + r * params.inner)));
        b = apply(b, entry(load_x(base + (r + 1u) * params.inner)));
        c = apply(c, entry(load_x(base + (r + 2u) * params.inner)));
        d = apply(d, entry(load_x(base + (r + 3u) * params.inner)));
    }
    for (; r < end; r++) {
        a = apply(a, entry(load_x(base + r * params.inner)));
    }
    var value = apply(apply(a, b), apply(c, d));
    if (MEAN) {
        value = average(value, params.divisor);
    }
    store_out(output, result(value));
}
