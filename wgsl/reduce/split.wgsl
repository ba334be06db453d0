// out[o, i] = apply(x[o, r, i] for all r)
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
// uses    lane_fold, partials, workgroup_fold

alias T = f32;
const WORKGROUP = 256u;
const LANES = WORKGROUP;
const IDENTITY = T(0);
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

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn to_bits(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }
fn from_bits(bits: vec2<u32>) -> T { return bitcast<T>(bits.x); }

// A value lies in two words, or in four with WIDE: a bit above 16 of its own says that each is
// there, whatever the value.

const VALUE_WORDS = select(2u, 4u, WIDE);

fn leave_value(number: u32, value: T) {
    let bits = to_bits(value);
    let at = number * VALUE_WORDS;
    partial_leave(at, 0x10000u | (bits.x & 0xffffu));
    partial_leave(at + 1u, 0x10000u | (bits.x >> 16u));
    if (WIDE) {
        partial_leave(at + 2u, 0x10000u | (bits.y & 0xffffu));
        partial_leave(at + 3u, 0x10000u | (bits.y >> 16u));
    }
}

fn look_at_value(number: u32, is_part: bool) -> vec4<u32> {
    var words = vec4<u32>(0u);
    if (is_part) {
        let at = number * VALUE_WORDS;
        words.x = partial_look(at);
        words.y = partial_look(at + 1u);
        if (WIDE) {
            words.z = partial_look(at + 2u);
            words.w = partial_look(at + 3u);
        }
    }
    return words;
}

fn take_value(number: u32, is_part: bool, seen: vec4<u32>, output: u32) -> T {
    if (!is_part) {
        return IDENTITY;
    }
    let at = number * VALUE_WORDS;
    var bits = vec2<u32>(0u);
    bits.x = partial_take(at, seen.x, output) & 0xffffu;
    bits.x |= partial_take(at + 1u, seen.y, output) << 16u;
    if (WIDE) {
        bits.y = partial_take(at + 2u, seen.z, output) & 0xffffu;
        bits.y |= partial_take(at + 3u, seen.w, output) << 16u;
    }
    return from_bits(bits);
}

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
    let own = workgroup_fold(lane, lane_fold(r, at, end));
    let first = output * params.parts;
    if (lane == 0u) {
        leave_value(first + part, own);
    }
    if (!partial_is_last(lane, output, params.parts)) {
        return;
    }
    var near = IDENTITY;
    // four parts are looked at before the first one is waited for
    for (var p = lane; p < params.parts; p += 4u * WORKGROUP) {
        let q = vec4<u32>(p, p + WORKGROUP, p + 2u * WORKGROUP, p + 3u * WORKGROUP);
        let is_part = q < vec4<u32>(params.parts);
        let a = look_at_value(first + q.x, is_part.x);
        let b = look_at_value(first + q.y, is_part.y);
        let c = look_at_value(first + q.z, is_part.z);
        let d = look_at_value(first + q.w, is_part.w);
        let left = apply(take_value(first + q.x, is_part.x, a, output),
            take_value(first + q.y, is_part.y, b, output));
        let right = apply(take_value(first + q.z, is_part.z, c, output),
            take_value(first + q.w, is_part.w, d, output));
        near = apply(near, apply(left, right));
    }
    var value = workgroup_fold(lane, near);
    if (lane == 0u) {
        if (MEAN) {
            value = value / T(params.divisor);
        }
        store_out(output, value);
    }
}
