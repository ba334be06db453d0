// values[row, b, :], indices[row, b, :] = the first `keep` entries of block b of a row in their
//   order, and what their places stand for; without workgroup memory
//
// A step of a top-k for adapters that run on a CPU, where the barriers of index/sort/best cost more than
// the comparisons: most entries only meet the last of those that are kept. Ties go by place.
//
// x        (rows, entries)   contiguous; `apply` turns a value into bits, high word first
// places   (rows, entries)   int64, what an entry stands for; read only with HAS_PLACES, else its
//          column
// values   (rows, pitch)     block b from b * keep; only the last block may have fewer than keep
// indices  (rows, pitch)     int64
// grid     one invocation per row and block of BLOCK entries
// turns    BLOCK * (KEEP + 1) + 2 * KEEP
// uses     order

alias T = f32;
const BLOCK = 1024u;
const KEEP = 5u;
const HAS_PLACES = false;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

const WORKGROUP = 16u;

struct Params {
    x_offset: u32,
    places_offset: u32,
    groups: u32,
    entries: u32,
    blocks: u32,
    keep: u32,
    pitch: u32,
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
    let group = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let block = group % params.blocks;
    let base = row * params.entries;
    let start = block * BLOCK;
    let end = min(start + BLOCK, params.entries);
    var keys: array<vec2<u32>, KEEP>;
    var kept: array<u32, KEEP>;
    for (var i = 0u; i < KEEP; i++) {
        keys[i] = vec2<u32>(0xffffffffu, 0xffffffffu);
        kept[i] = 0xffffffffu;
    }
    var last = found_nothing();
    for (var entry = start; entry < end; entry++) {
        let found = Found(order_key(apply(load_x(base + entry))), entry);
        if (!found_before(found, last)) {
            continue;
        }
        var j = KEEP - 1u;
        for (; j > 0u; j--) {
            if (!found_before(found, Found(keys[j - 1u], kept[j - 1u]))) {
                break;
            }
            keys[j] = keys[j - 1u];
            kept[j] = kept[j - 1u];
        }
        keys[j] = found.key;
        kept[j] = found.place;
        last = Found(keys[KEEP - 1u], kept[KEEP - 1u]);
    }
    let out_base = row * params.pitch + block * params.keep;
    for (var i = 0u; i < min(params.keep, end - start); i++) {
        var index = vec2<u32>(kept[i], 0u);
        if (HAS_PLACES) {
            index = load_places(base + kept[i]);
        }
        values[out_base + i] = load_x(base + kept[i]);
        indices[out_base + i] = index;
    }
}
