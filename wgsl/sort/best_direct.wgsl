// order[row, b, :] = the places of the best KEEP entries of block b of a row, in order, without
//   workgroup memory
//
// A step of a top-k for adapters that run on a CPU, where the barriers of sort/blocks cost more
// than the comparisons: most entries only meet the last of those that are kept. Ties go by place.
// Missing places are 0xffffffff and come last.
//
// x       (rows, columns)         contiguous; `apply` turns a value into bits, high word first
// places  (rows, entries)         u32, the places to choose from; read only with HAS_PLACES, else
//         all columns (entries = columns)
// order   (rows, pitch)           u32, block b from b * keep
// grid    one invocation per row and block of BLOCK entries
// uses    order

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
    columns: u32,
    entries: u32,
    blocks: u32,
    keep: u32,
    pitch: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> order: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> u32 { return places[params.places_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let start = group % params.blocks * BLOCK;
    var keys: array<vec2<u32>, KEEP>;
    var kept: array<u32, KEEP>;
    for (var i = 0u; i < KEEP; i++) {
        keys[i] = vec2<u32>(0xffffffffu, 0xffffffffu);
        kept[i] = 0xffffffffu;
    }
    var last_key = keys[0];
    var last_place = 0xffffffffu;
    let end = min(start + BLOCK, params.entries);
    for (var entry = start; entry < end; entry++) {
        var place = entry;
        if (HAS_PLACES) {
            place = load_places(row * params.entries + entry);
        }
        if (place >= params.columns) {
            continue;
        }
        let key = order_key(apply(load_x(row * params.columns + place)));
        if (!order_before(key, place, last_key, last_place)) {
            continue;
        }
        var j = KEEP - 1u;
        for (; j > 0u; j--) {
            if (!order_before(key, place, keys[j - 1u], kept[j - 1u])) {
                break;
            }
            keys[j] = keys[j - 1u];
            kept[j] = kept[j - 1u];
        }
        keys[j] = key;
        kept[j] = place;
        last_key = keys[KEEP - 1u];
        last_place = kept[KEEP - 1u];
    }
    let first = group % params.blocks * params.keep;
    for (var i = 0u; i < params.keep && first + i < params.pitch; i++) {
        order[row * params.pitch + first + i] = kept[i];
    }
}
