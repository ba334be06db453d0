// out[o, j, i] = x[o, ids[j], i]
//
// x       (outer, limit, inner)   contiguous
// ids     (picked)                int64; a bad one is reported and reads row 0
// out     (outer, picked, inner)
// grid    one workgroup per 4 * WORKGROUP elements of out; a lane makes four, WORKGROUP apart, and asks
//         for all ids, then for all elements
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

// Which row of out an element is in, and which outer one; divisions take longer than all else.
fn row_of(k: u32) -> vec2<u32> {
    var row = k;
    if (params.inner > 1u) { row = k / params.inner; }
    var outer = 0u;
    if (row >= params.picked) { outer = row / params.picked; }
    return vec2<u32>(row, outer);
}

fn id_of(row: vec2<u32>) -> vec2<u32> { return load_ids(row.x - row.y * params.picked); }

fn source_of(k: u32, row: vec2<u32>, id: vec2<u32>) -> u32 {
    let place = checked_index(id, params.limit, WRAP);
    return (row.y * params.limit + place - row.x) * params.inner + k;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let row_0 = row_of(first);
        let row_1 = row_of(first + WORKGROUP);
        let row_2 = row_of(first + 2u * WORKGROUP);
        let row_3 = row_of(first + 3u * WORKGROUP);
        let id_0 = id_of(row_0);
        let id_1 = id_of(row_1);
        let id_2 = id_of(row_2);
        let id_3 = id_of(row_3);
        let source_0 = source_of(first, row_0, id_0);
        let source_1 = source_of(first + WORKGROUP, row_1, id_1);
        let source_2 = source_of(first + 2u * WORKGROUP, row_2, id_2);
        let source_3 = source_of(first + 3u * WORKGROUP, row_3, id_3);
        let value_0 = load_x(source_0);
        let value_1 = load_x(source_1);
        let value_2 = load_x(source_2);
        let value_3 = load_x(source_3);
        store_out(first, value_0);
        store_out(first + WORKGROUP, value_1);
        store_out(first + 2u * WORKGROUP, value_2);
        store_out(first + 3u * WORKGROUP, value_3);
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        let row = row_of(k);
        store_out(k, load_x(source_of(k, row, id_of(row))));
    }
}
