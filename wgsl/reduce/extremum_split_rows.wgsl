// indices[o, i] = the first r at which x[o, r, i] is largest (smallest with DESCENDING = false)
// values[o, i]  = x there, bit for bit; a NaN is taken before any number
//
// For GPUs, where rows are long and too few to fill it: several workgroups share an output, and the
// last one of them to finish takes the best of what they found.
//
// x        (outer, reduced, inner)   contiguous; `apply` turns a value into bits, high word first
// places   (outer, reduced, inner)   int64, what r stands for; read only with HAS_PLACES (an
//          earlier pass found them)
// values   (outer, inner)
// indices  (outer, inner)            int64
// status   holds the places found on their way, counted from 1; see partials
// grid     one workgroup per output and part: part p takes r from p * chunk to (p + 1) * chunk, and
//          is not empty; its lanes stride over r
// turns    (chunk + parts) // WORKGROUP // 4 + 256
// uses     order, extremum, workgroup_first, partials

alias T = f32;
const WORKGROUP = 256u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = true;
const HAS_PLACES = false;

struct Params {
    x_offset: u32,
    places_offset: u32,
    outputs: u32,
    reduced: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> places: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> values: array<T>;
@group(0) @binding(3) var<storage, read_write> indices: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> vec2<u32> { return places[params.places_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

fn look_at_place(number: u32, is_part: bool) -> u32 {
    var word = 0u;
    if (is_part) {
        word = partial_look(number);
    }
    return word;
}

fn take_entry(base: u32, number: u32, is_part: bool, seen: u32) -> Found {
    var word = 0u;
    if (is_part) {
        word = partial_take(number, seen);
    }
    if (word == 0u) {
        return found_nothing();
    }
    return extremum_entry(base, word - 1u);
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
    let base = outer * params.reduced * params.inner + inner;
    let end = min((part + 1u) * params.chunk, params.reduced);
    let own = extremum_of(base, part * params.chunk + lane, end, WORKGROUP);
    let best = workgroup_first(lane, own);
    let first = output * params.parts;
    if (lane == 0u) {
        partial_leave(first + part, best.place + 1u);
    }
    if (!partial_is_last(lane, output, params.parts)) {
        return;
    }
    var near = found_nothing();
    // four parts are looked at before the first one is waited for
    for (var p = lane; p < params.parts; p += 4u * WORKGROUP) {
        let q = vec4<u32>(p, p + WORKGROUP, p + 2u * WORKGROUP, p + 3u * WORKGROUP);
        let is_part = q < vec4<u32>(params.parts);
        let seen = vec4<u32>(look_at_place(first + q.x, is_part.x),
            look_at_place(first + q.y, is_part.y), look_at_place(first + q.z, is_part.z),
            look_at_place(first + q.w, is_part.w));
        let a = take_entry(base, first + q.x, is_part.x, seen.x);
        let b = take_entry(base, first + q.y, is_part.y, seen.y);
        let c = take_entry(base, first + q.z, is_part.z, seen.z);
        let d = take_entry(base, first + q.w, is_part.w, seen.w);
        near = found_first(near, found_first(found_first(a, b), found_first(c, d)));
    }
    let found = workgroup_first(lane, near);
    if (lane == 0u) {
        let at = base + found.place * params.inner;
        var index = vec2<u32>(found.place, 0u);
        if (HAS_PLACES) {
            index = load_places(at);
        }
        values[output] = load_x(at);
        indices[output] = index;
    }
}
