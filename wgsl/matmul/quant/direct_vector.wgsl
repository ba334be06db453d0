// out[start + n] = sum over k of x[k] * weight[n, k] + bias[n], for one row of x, without workgroup
//   memory
//
// For adapters that run on a CPU, where a barrier switches between all invocations of a workgroup
// and costs more than the products. An invocation makes four rows of the weight.
//
// x        (columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (out_columns); columns start to start + rows - 1 are written
// grid     one invocation for 4 rows of the weight
// format   quant/q4_0 stands for any file of quant/ with its two functions
// fuses    -> out
// joint    matmul/quant/direct_vectors, matmul/quant/direct_pair
// turns    units + 64
// uses     matmul/quant/direct_rows, quant/q4_0, quant/halves_direct, quant/planes

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

struct Params {
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    start: u32,
    x_offset: u32,
    bias_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const HAS_BIAS = false;
// Whether the last unit of a row reaches past the columns.
const PADDED = false;

const WORKGROUP = 16u;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

fn load_units(units: vec4<u32>) -> Units {
    return Units(load_unit(units.x), load_unit(units.y), load_unit(units.z), load_unit(units.w));
}

fn store_value(row: u32, sum: f32) {
    if (row >= params.rows) {
        return;
    }
    var value = sum;
    if (HAS_BIAS) {
        value += load_bias(params.start + row);
    }
    store_out(params.start + row, value);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = ((id.y * count.x + id.x) * WORKGROUP + lane) * ROWS;
    if (row >= params.rows) {
        return;
    }
    // Rows past the end repeat the last row and are not stored.
    let rows = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    let sums = row_sums(rows * params.units);
    store_value(row, sums.x);
    store_value(row + 1u, sums.y);
    store_value(row + 2u, sums.z);
    store_value(row + 3u, sums.w);
}
