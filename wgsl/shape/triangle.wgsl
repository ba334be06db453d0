// out[..., row, column] = input[..., row, column] where keep(row, column), else 0
//
// input  (..., rows, columns)  contiguous
// out    the same
// grid   one invocation per four elements, WORKGROUP apart
// turns  4
alias T = f32;

@group(0) @binding(0) var<storage, read> input: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
struct Params { count: u32, rows: u32, columns: u32, diagonal: i32, input_offset: u32 }
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn load_input(i: u32) -> T { return input[params.input_offset + i]; }
fn keep(row: i32, column: i32) -> bool { return column <= row + params.diagonal; }

fn kept(i: u32) -> T {
    let row = i32((i / params.columns) % params.rows);
    let column = i32(i % params.columns);
    if (keep(row, column)) { return load_input(i); }
    return T();
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let value_0 = kept(first);
        let value_1 = kept(first + WORKGROUP);
        let value_2 = kept(first + 2u * WORKGROUP);
        let value_3 = kept(first + 3u * WORKGROUP);
        out[first] = value_0;
        out[first + WORKGROUP] = value_1;
        out[first + 2u * WORKGROUP] = value_2;
        out[first + 3u * WORKGROUP] = value_3;
        return;
    }
    for (var i = first; i < params.count; i += WORKGROUP) { out[i] = kept(i); }
}
