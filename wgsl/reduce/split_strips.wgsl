// out[o, i] = result(apply(entry(x[o, r, i]) for all r))
//   by default a sum; divided by `divisor` with MEAN
//
// For GPUs, where strips alone are too few to fill it: several workgroups share the outputs of a
// strip, and the last one of them to finish folds their parts, in the order of the parts.
//
// x       (outer, reduced, inner)   contiguous
// out     (outer, inner)
// status  holds the parts on their way; see partials
// grid    one workgroup per outer, part and WIDTH neighbours in `inner`, which read neighbouring
//         words: part p takes r from p * chunk to (p + 1) * chunk; lanes WIDTH apart share an
//         output
// fuses   x -> out
// turns   chunk * WIDTH // WORKGROUP + parts + 256
// uses    strip_fold, partial_fold, partials

alias X = f32;
alias T = f32;
alias U = f32;
const WORKGROUP = 256u;
const WIDTH = 32u;
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
fn share(base: u32, first: u32, end: u32) -> T { return strip_share(base, first, end); }
fn result(value: T) -> U { return value; }
fn average(value: T, count: u32) -> T { return value / T(count); }
fn to_bits(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }
fn from_bits(bits: vec2<u32>) -> T { return bitcast<T>(bits.x); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    let tiles = (params.inner + WIDTH - 1u) / WIDTH;
    let part = (group / tiles) % params.parts;
    let outer = group / (tiles * params.parts);
    if (outer * params.inner >= params.outputs) {
        return;
    }
    let column = lane % WIDTH;
    let tile = group % tiles;
    let inner = tile * WIDTH + column;
    // lanes past the end take the last column, too: every word of a part is left and taken
    let base = outer * params.reduced * params.inner + min(inner, params.inner - 1u);
    let end = min((part + 1u) * params.chunk, params.reduced);
    let own = strip_fold(lane, share(base, part * params.chunk + lane / WIDTH, end));
    let counter = outer * tiles + tile;
    let first = counter * params.parts * WIDTH + column;
    if (lane < WIDTH) {
        partial_leave_value(first + part * WIDTH, own);
    }
    workgroupBarrier();  // no lane is counted whose stores are still to come
    if (!partial_is_last(lane, counter, params.parts)) {
        return;
    }
    let near = partial_fold(first, WIDTH, lane / WIDTH, STRIPS, params.parts);
    var value = strip_fold(lane, near);
    if (lane < WIDTH && inner < params.inner) {
        if (MEAN) {
            value = average(value, params.divisor);
        }
        store_out(outer * params.inner + inner, result(value));
    }
}
