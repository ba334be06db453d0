// out[row, column] = weight[row, column] as f32, bit for bit what the format defines
//
// weight   the planes of a quantized weight (rows, columns), `units` units of 32 columns a row
// out      (all rows, columns); rows start to start + rows - 1 are written
// grid     one invocation per octet of 8 columns
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0

@group(0) @binding(0) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

struct Params {
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    start: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn store_out(i: u32, value: f32) { out[i] = value; }

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
    var values = dequantize_octet(octet);
    for (var i = 0u; i < 8u; i++) {
        if (column + i < params.columns) {
            store_out((params.start + row) * params.columns + column + i, values[i >> 2u][i & 3u]);
        }
    }
}
