// out[start + row, column] = weight[first + row, column] as f32, bit for bit what the format defines
//
// weight   the planes of a quantized weight, `units` units of 32 columns a row
// out      (all rows, columns); rows start to start + rows - 1 are written
// grid     one invocation per octet of 8 columns
// fuses    -> out
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0, quant/halves_direct, quant/planes

@group(0) @binding(0) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

struct Params {
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    first: u32,
    start: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn store_out(i: u32, value: f32) { out[i] = value; }

fn store_quad(row: u32, column: u32, quad: vec4<f32>) {
    store_value(row, column, quad.x);
    store_value(row, column + 1u, quad.y);
    store_value(row, column + 2u, quad.z);
    store_value(row, column + 3u, quad.w);
}

fn store_value(row: u32, column: u32, value: f32) {
    if (column < params.columns) {
        store_out(row * params.columns + column, value);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let octet = (id.y * count.x + id.x) * WORKGROUP + lane;
    let row = octet / (4u * params.units);
    if (row >= params.rows) {
        return;
    }
    let column = 8u * (octet - row * 4u * params.units);
    let values = dequantize_octet(params.first * 4u * params.units + octet);
    store_quad(params.start + row, column, values[0]);
    store_quad(params.start + row, column + 4u, values[1]);
}
