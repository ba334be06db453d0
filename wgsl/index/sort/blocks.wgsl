// order[row, b, :] = the places of block b of a row, sorted by their values
//
// First step of a sort, then index/sort/merge. Ties go by place, so the sort is stable.
//
// x      (rows, columns)   contiguous; `apply` turns a value into bits, high word first
// order  (rows, columns)   u32, block b from b * BLOCK
// grid   one workgroup per row and block of BLOCK entries
// turns  1024
// source Batcher 1968, "Sorting networks and their applications" (bitonic sort)
// uses   order

alias T = f32;
const BLOCK = 1024u;
const WORKGROUP = 256u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    x_offset: u32,
    groups: u32,
    columns: u32,
    blocks: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> order: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
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
    let base = group / params.blocks * params.columns;
    let start = group % params.blocks * BLOCK;
    for (var i = lane; i < BLOCK; i += WORKGROUP) {
        var found = found_nothing();
        if (start + i < params.columns) {
            found = Found(order_key(apply(load_x(base + start + i))), start + i);
        }
        block_keys[i] = found.key;
        block_places[i] = found.place;
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
    for (var i = lane; i < BLOCK && start + i < params.columns; i += WORKGROUP) {
        order[base + start + i] = block_places[i];
    }
}
