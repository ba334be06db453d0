// out[r, c] = src[last[r] - 1, c],  x[r, c] where last[r] is 0
//
// x      (rows, width)      contiguous
// last   (rows)             u32
// src    (sources, width)   contiguous
// out    (rows, width)
// grid   one workgroup per 4 * WORKGROUP elements of out; a lane makes four, WORKGROUP apart
// fuses  -> out
// turns  4

alias T = f32;
const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    last_offset: u32,
    src_offset: u32,
    count: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> last: array<u32>;
@group(0) @binding(2) var<storage, read> src: array<T>;
@group(0) @binding(3) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_last(i: u32) -> u32 { return last[params.last_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

// Which row of out an element is in; a division takes longer than all else.
fn row_of(k: u32) -> u32 {
    var row = k;
    if (params.width > 1u) { row = k / params.width; }
    return row;
}

fn chosen(k: u32, row: u32, found: u32) -> T {
    if (found == 0u) { return load_x(k); }
    return load_src((found - 1u - row) * params.width + k);
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
        let found_0 = load_last(row_0);
        let found_1 = load_last(row_1);
        let found_2 = load_last(row_2);
        let found_3 = load_last(row_3);
        let value_0 = chosen(first, row_0, found_0);
        let value_1 = chosen(first + WORKGROUP, row_1, found_1);
        let value_2 = chosen(first + 2u * WORKGROUP, row_2, found_2);
        let value_3 = chosen(first + 3u * WORKGROUP, row_3, found_3);
        store_out(first, value_0);
        store_out(first + WORKGROUP, value_1);
        store_out(first + 2u * WORKGROUP, value_2);
        store_out(first + 3u * WORKGROUP, value_3);
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        let row = row_of(k);
        store_out(k, chosen(k, row, load_last(row)));
    }
}
