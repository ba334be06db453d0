// out[o, i] = result(apply(entry(x[o, r, i]) for all r))
//   by default a sum; divided by `divisor` with MEAN
//
// For GPUs, where rows are long and too few to fill it: several workgroups share an output, and the
// last one of them to finish folds their parts, in the order of the parts.
//
// x       (outer, reduced, inner)   contiguous
// out     (outer, inner)
// status  holds the parts on their way; see partials
// grid    one workgroup per output and part: part p takes r from p * chunk to (p + 1) * chunk; its
//         lanes stride over r
// fuses   x -> out
// turns   chunk // WORKGROUP + parts // WORKGROUP + 256
// uses    lane_fold, partial_fold, partials

alias X = f32;
alias T = f32;
alias U = f32;
const WORKGROUP = 256u;
const LANES = WORKGROUP;
const MEAN = false;
const WIDE = false;

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
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn store_out(i: u32, value: U) { out[i] = value; }
fn entry(value: X) -> T { return value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn share(first: u32, start: u32, end: u32) -> T { return lane_fold(first, start, end); }
fn across_fold(lane: u32, value: T) -> T { return workgroup_fold(lane, value); }
fn result(value: T) -> U { return value; }
fn average(value: T, count: u32) -> T { return value / T(count); }
fn to_bits(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }
fn from_bits(bits: vec2<u32>) -> T { return bitcast<T>(bits.x); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.outputs * params.parts) {
        return;
    }
    let inner = group % params.inner;
    let part = (group / params.inner) % params.parts;
    let outer = group / (params.inner * params.parts);
    let output = outer * params.inner + inner;
    let r = part * params.chunk + lane;
    let end = min((part + 1u) * params.chunk, params.reduced);
    let at = (outer * params.reduced + r) * params.inner + inner;
    let own = across_fold(lane, share(r, at, end));
    let first = output * params.parts;
    if (lane == 0u) {
        partial_leave_value(first + part, own);
    }
    if (!partial_is_last(lane, output, params.parts)) {
        return;
    }
    let near = partial_fold(first, 1u, lane, WORKGROUP, params.parts);
    var value = across_fold(lane, near);
    if (lane == 0u) {
        if (MEAN) {
            value = average(value, params.divisor);
        }
        store_out(output, result(value));
    }
}
