// out[start + n] = sum over k of x[k] * weight[n, k] + bias[n], for one row of x, without workgroup
//   memory
//
// For adapters that run on a CPU, where a barrier switches between all invocations of a workgroup
// and costs more than the products. An invocation makes four rows of the weight, unit by unit; a
// quad of x serves all of them.
//
// x        (columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (out_columns); columns start to start + rows - 1 are written
// grid     one invocation for 4 rows of the weight
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0, quant/planes

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
const ROWS = 4u;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// x at a column, zero past the end.
fn column_of_x(column: u32) -> f32 {
    if (PADDED && column >= params.columns) {
        return 0.0;
    }
    return load_x(column);
}

// Columns column to column + 3 of x, with the factors that the format's numbers lack.
fn quad_of_x(column: u32) -> vec4<f32> {
    return X_FACTORS * vec4<f32>(
        column_of_x(column), column_of_x(column + 1u),
        column_of_x(column + 2u), column_of_x(column + 3u));
}

// The products of one quad of columns of four units with x.
fn products(
    unit_0: Unit,
    unit_1: Unit,
    unit_2: Unit,
    unit_3: Unit,
    quad: u32,
    x_quad: vec4<f32>,
) -> vec4<f32> {
    return vec4<f32>(
        dot(unpack_quad(unit_0, quad), x_quad),
        dot(unpack_quad(unit_1, quad), x_quad),
        dot(unpack_quad(unit_2, quad), x_quad),
        dot(unpack_quad(unit_3, quad), x_quad),
    );
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
    let last_row = params.rows - 1u;
    let row_0 = row * params.units;
    let row_1 = min(row + 1u, last_row) * params.units;
    let row_2 = min(row + 2u, last_row) * params.units;
    let row_3 = min(row + 3u, last_row) * params.units;

    var sums = vec4<f32>();
    for (var unit = 0u; unit < params.units; unit++) {
        let unit_0 = load_unit(row_0 + unit);
        let unit_1 = load_unit(row_1 + unit);
        let unit_2 = load_unit(row_2 + unit);
        let unit_3 = load_unit(row_3 + unit);
        let column = 32u * unit;
        let x_0 = quad_of_x(column);
        let x_1 = quad_of_x(column + 4u);
        let x_2 = quad_of_x(column + 8u);
        let x_3 = quad_of_x(column + 12u);
        let x_4 = quad_of_x(column + 16u);
        let x_5 = quad_of_x(column + 20u);
        let x_6 = quad_of_x(column + 24u);
        let x_7 = quad_of_x(column + 28u);
        let first = (products(unit_0, unit_1, unit_2, unit_3, 0u, x_0)
            + products(unit_0, unit_1, unit_2, unit_3, 1u, x_1))
            + (products(unit_0, unit_1, unit_2, unit_3, 2u, x_2)
            + products(unit_0, unit_1, unit_2, unit_3, 3u, x_3));
        let last = (products(unit_0, unit_1, unit_2, unit_3, 4u, x_4)
            + products(unit_0, unit_1, unit_2, unit_3, 5u, x_5))
            + (products(unit_0, unit_1, unit_2, unit_3, 6u, x_6)
            + products(unit_0, unit_1, unit_2, unit_3, 7u, x_7));
        var x_sum = 0.0;
        if (HAS_LOW) {
            x_sum = dot(((x_0 + x_1) + (x_2 + x_3)) + ((x_4 + x_5) + (x_6 + x_7)), 1.0 / X_FACTORS);
        }
        sums += vec4<f32>(
            combine(unit_0, first.x, last.x, x_sum),
            combine(unit_1, first.y, last.y, x_sum),
            combine(unit_2, first.z, last.z, x_sum),
            combine(unit_3, first.w, last.w, x_sum),
        );
    }
    store_value(row, sums.x);
    store_value(row + 1u, sums.y);
    store_value(row + 2u, sums.z);
    store_value(row + 3u, sums.w);
}
