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
    for (var p = lane; p < params.parts; p += WORKGROUP) {
        let place = partial_take(first + p, partial_look(first + p));
        if (place != 0u) {
            near = found_first(near, extremum_entry(base, place - 1u));
        }
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
