// indices[o, p, i] = the first r in part p at which x[o, r, i] is largest (smallest with
//   DESCENDING = false)
// values[o, p, i]  = x there, bit for bit; a NaN is taken before any number
//
// x        (outer, reduced, inner)   contiguous; `apply` turns a value into bits, high word first
// places   (outer, reduced, inner)   int64, what r stands for; read only with HAS_PLACES (an
//          earlier pass found them)
// values   (outer, parts, inner)     part p holds r from p * chunk to (p + 1) * chunk; no part is
//          empty
// indices  (outer, parts, inner)     int64
// grid     one workgroup per WORKGROUP outputs, one lane each: neighbours in `inner` read
//          neighbouring words
// turns    chunk // 4 + 2
// uses     extremum

alias T = f32;
const WORKGROUP = 64u;
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
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> vec2<u32> { return places[params.places_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

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
    let found = extremum_of(base, part * params.chunk, end, 1u);
    let at = base + found.place * params.inner;
    var index = vec2<u32>(found.place, 0u);
    if (HAS_PLACES) {
        index = load_places(at);
    }
    values[output] = load_x(at);
    indices[output] = index;
}
