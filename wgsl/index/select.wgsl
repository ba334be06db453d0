// out[o, j, i] = x[o, ids[j], i]
//
// x       (outer, limit, inner)   contiguous
// ids     (picked)                int64; a bad one is reported and reads row 0
// out     (outer, picked, inner)
// grid    one workgroup per 4 * WORKGROUP elements of out; a lane makes four, WORKGROUP apart, and asks for all
//         before it stores
// fuses   -> out
// turns   4
// uses    status

alias T = f32;
const WORKGROUP = 64u;
const WRAP = false;

struct Params {
    x_offset: u32,
    ids_offset: u32,
    op: u32,
    count: u32,
    limit: u32,
    picked: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> ids: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_ids(i: u32) -> vec2<u32> { return ids[params.ids_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

fn picked(k: u32) -> T {
    let row = k / params.inner;
    let id = checked_index(load_ids(row % params.picked), params.limit, WRAP);
    let source = row / params.picked * params.limit + id;
    return load_x(source * params.inner + k % params.inner);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let value_0 = picked(first);
        let value_1 = picked(first + WORKGROUP);
        let value_2 = picked(first + 2u * WORKGROUP);
        let value_3 = picked(first + 3u * WORKGROUP);
        store_out(first, value_0);
        store_out(first + WORKGROUP, value_1);
        store_out(first + 2u * WORKGROUP, value_2);
        store_out(first + 3u * WORKGROUP, value_3);
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        store_out(k, picked(k));
    }
}
