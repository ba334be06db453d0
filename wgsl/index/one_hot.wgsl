// out[j, c] = 1 where ids[j] is c, else 0
//
// ids     (count / classes)   int64; one that is no class is reported, and its row is 0
// out     (count)             rows of `classes`, int64
// grid    one workgroup per 4 * WORKGROUP elements of out; a lane makes four, WORKGROUP apart, which are
//         `rows` rows and `columns` columns; it asks for all ids first
// fuses   -> out
// turns   4
// uses    status

alias T = vec2<u32>;
const WORKGROUP = 256u;

struct Params {
    ids_offset: u32,
    op: u32,
    count: u32,
    classes: u32,
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> ids: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_ids(i: u32) -> vec2<u32> { return ids[params.ids_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

// Row and column of the element that is WORKGROUP further on; divisions take longer than all else.
fn further(place: vec2<u32>) -> vec2<u32> {
    let next = place + vec2<u32>(params.rows, params.columns);
    if (next.y >= params.classes) { return vec2<u32>(next.x + 1u, next.y - params.classes); }
    return next;
}

fn hot(id: vec2<u32>, column: u32) -> T {
    if (column == 0u && (id.y != 0u || id.x >= params.classes)) {
        report_index(params.op, id, params.classes);
    }
    return T(u32(all(id == vec2<u32>(column, 0u))), 0u);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    let row = first / params.classes;
    var place = vec2<u32>(row, first - row * params.classes);
    if (first + 3u * WORKGROUP < params.count) {
        let place_1 = further(place);
        let place_2 = further(place_1);
        let place_3 = further(place_2);
        let id_0 = load_ids(place.x);
        let id_1 = load_ids(place_1.x);
        let id_2 = load_ids(place_2.x);
        let id_3 = load_ids(place_3.x);
        store_out(first, hot(id_0, place.y));
        store_out(first + WORKGROUP, hot(id_1, place_1.y));
        store_out(first + 2u * WORKGROUP, hot(id_2, place_2.y));
        store_out(first + 3u * WORKGROUP, hot(id_3, place_3.y));
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        store_out(k, hot(load_ids(place.x), place.y));
        place = further(place);
    }
}
