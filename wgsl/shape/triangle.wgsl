// out[..., row, column] = input[..., row, column] where keep(row, column), else 0
//
// input  (..., rows, columns)  contiguous
// out    the same
// grid   one invocation per element
alias T = f32;

@group(0) @binding(0) var<storage, read> input: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
struct Params { count: u32, rows: u32, columns: u32, diagonal: i32, input_offset: u32 }
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn load_input(i: u32) -> T { return input[params.input_offset + i]; }
fn keep(row: i32, column: i32) -> bool { return column <= row + params.diagonal; }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) { return; }
    let row = i32((i / params.columns) % params.rows);
    let column = i32(i % params.columns);
    out[i] = select(T(), load_input(i), keep(row, column));
}
