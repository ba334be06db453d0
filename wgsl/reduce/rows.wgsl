// out[o, p, i] = result(apply(entry(x[o, r, i]) for r in part p))
//   by default a sum; divided by `divisor` with MEAN
//
// x     (outer, reduced, inner)   contiguous
// out   (outer, parts, inner)     part p holds r from p * chunk to (p + 1) * chunk
// grid  one workgroup per WORKGROUP / LANES outputs; the LANES lanes of an output stride over r
// fuses x -> out
// turns chunk // LANES + 128
// uses  lane_fold

alias X = f32;
alias T = f32;
alias U = f32;
const WORKGROUP = 256u;
const LANES = 256u;
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
fn share(first: u32, start: u32, end: u32) -> T { return lane_fold(first, start, end); }
fn result(value: T) -> U { return value; }
fn average(value: T, count: u32) -> T { return value / T(count); }
fn across_fold(lane: u32, value: T) -> T { return workgroup_fold(lane, value); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (WORKGROUP / LANES);
    if (first >= params.outputs) {
        return;
    }
    let output = first + lane / LANES;
    let known = min(output, params.outputs - 1u);
    let inner = known % params.inner;
    let part = (known / params.inner) % params.parts;
    let outer = known / (params.inner * params.parts);
    let end = min((part + 1u) * params.chunk, params.reduced);
    let r = part * params.chunk + lane % LANES;
    let at = (outer * params.reduced + r) * params.inner + inner;
    var value = across_fold(lane, share(r, at, end));
    if (lane % LANES == 0u && output < params.outputs) {
        if (MEAN) {
            value = average(value, params.divisor);
        }
        store_out(output, result(value));
    }
}
