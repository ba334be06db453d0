// order[row, b, :] = the places of block b of a row, sorted by their values; the first `keep` of
//   them
//
// First step of a sort (then sort/merge) and every step of a top-k, which sorts what the step
// before kept. Ties go by place, so the sort is stable. Missing places are 0xffffffff and come
// last.
//
// x       (rows, columns)         contiguous; `apply` turns a value into bits, high word first
// places  (rows, entries)         u32, the places to sort; read only with HAS_PLACES, else all
//         columns (entries = columns)
// order   (rows, pitch)           u32, block b from b * keep
// grid    one workgroup per row and block of BLOCK entries
// source  Batcher 1968, "Sorting networks and their applications" (bitonic sort)
// uses    order

alias T = f32;
const BLOCK = 1024u;
const WORKGROUP = 256u;
const HAS_PLACES = false;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

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

var<workgroup> block_keys: array<vec2<u32>, BLOCK>;
var<workgroup> block_places: array<u32, BLOCK>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let start = group % params.blocks * BLOCK;
    for (var i = lane; i < BLOCK; i += WORKGROUP) {
        var place = 0xffffffffu;
        if (start + i < params.entries) {
            place = start + i;
            if (HAS_PLACES) {
                place = load_places(row * params.entries + place);
            }
        }
        var key = vec2<u32>(0xffffffffu, 0xffffffffu);
        if (place < params.columns) {
            key = order_key(apply(load_x(row * params.columns + place)));
        }
        block_keys[i] = key;
        block_places[i] = place;
    }
    for (var size = 2u; size <= BLOCK; size = size * 2u) {
        for (var distance = size / 2u; distance > 0u; distance = distance / 2u) {
            workgroupBarrier();
            for (var pair = lane; pair < BLOCK / 2u; pair += WORKGROUP) {
                let low = pair / distance * distance * 2u + pair % distance;
                let high = low + distance;
                let swaps = order_before(block_keys[high], block_places[high], block_keys[low],
                    block_places[low]);
                if (swaps == ((low & size) == 0u)) {
                    let key = block_keys[low];
                    block_keys[low] = block_keys[high];
                    block_keys[high] = key;
                    let place = block_places[low];
                    block_places[low] = block_places[high];
                    block_places[high] = place;
                }
            }
        }
    }
    workgroupBarrier();
    let first = group % params.blocks * params.keep;
    for (var i = lane; i < params.keep && first + i < params.pitch; i += WORKGROUP) {
        order[row * params.pitch + first + i] = block_places[i];
    }
}
