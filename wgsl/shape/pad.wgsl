// out[n, q, r] = x[n, inside(q - top), inside(r - left)]: planes with more lines and columns around them,
//   which lie inside by reflection, by default
//
// x     (planes, in_height, in_width)     contiguous
// out   (planes, out_height, out_width)
// grid  TILE columns by 4 * WORKGROUP / TILE lines of all planes a workgroup (parts/plane_lines)
// fuses -> out
// turns 4
// uses  plane_lines

alias T = f32;
alias Column = u32;
const WORKGROUP = 256u;
const TILE = 64u;

struct Params {
    x_offset: u32,
    lines: u32,
    tiles: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    top: u32,
    left: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn inside(at: i32, length: i32) -> i32 { return length - 1 - abs(length - 1 - abs(at)); }

fn of_column(column: u32) -> Column {
    return u32(inside(i32(column) - i32(params.left), i32(params.in_width)));
}

fn element(at: vec2<u32>, place: Column) -> T {
    let row = inside(i32(at.y) - i32(params.top), i32(params.in_height));
    return load_x((at.x * params.in_height + u32(row)) * params.in_width + place);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    write_lines(id.y * count.x + id.x, lane);
}
