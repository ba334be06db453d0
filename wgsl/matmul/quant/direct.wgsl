// out[m, start + n] = sum over k of x[m, k] * weight[n, k] + bias[n], without workgroup memory
//
// For adapters that run on a CPU, where a barrier switches between all invocations of a workgroup
// and costs more than the products. An invocation makes four rows of the weight for up to BATCH
// rows of x, octet by octet of columns.
//
// x        (batch, columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (batch, out_columns); columns start to start + rows - 1 are written
// grid     one invocation for 4 rows of the weight and BATCH rows of x, neighbours along the weight
// format   quant/q4_0 stands for any file of quant/ with its two functions
// fuses    -> out
// turns    4 * units + 64
// uses     quant/q4_0, quant/halves_direct, quant/planes

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

struct Params {
    batch: u32,
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    start: u32,
    out_columns: u32,
    x_offset: u32,
    bias_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

// 1, 2, 4 or 8.
const BATCH = 1u;
const HAS_BIAS = false;
// Whether the last unit of a row reaches past the columns.
const PADDED = false;

const WORKGROUP = 16u;
const ROWS = 4u;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// x at column `column` of the row that begins at `at`; zero past the end.
fn column_of_x(at: u32, column: u32) -> f32 {
    if (PADDED && column >= params.columns) {
        return 0.0;
    }
    return load_x(at + column);
}

// sum + weight * x over the four columns that begin at `column`; the weight comes by columns.
fn add_quad(
    sum: vec4<f32>,
    at: u32,
    column: u32,
    column_0: vec4<f32>,
    column_1: vec4<f32>,
    column_2: vec4<f32>,
    column_3: vec4<f32>,
) -> vec4<f32> {
    let first = column_0 * column_of_x(at, column) + column_1 * column_of_x(at, column + 1u);
    let last = column_2 * column_of_x(at, column + 2u) + column_3 * column_of_x(at, column + 3u);
    return sum + (first + last);
}

fn store_value(m: u32, row: u32, sum: f32) {
    if (row >= params.rows) {
        return;
    }
    var value = sum;
    if (HAS_BIAS) {
        value += load_bias(params.start + row);
    }
    store_out(m * params.out_columns + params.start + row, value);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    let fours = (params.rows + ROWS - 1u) / ROWS;
    let row = (place % fours) * ROWS;
    let m = (place / fours) * BATCH;
    if (m >= params.batch) {
        return;
    }
    // Rows past the end, of the weight or of x, repeat the last one and are not stored.
    let last_row = params.rows - 1u;
    let row_0 = row * params.units;
    let row_1 = min(row + 1u, last_row) * params.units;
    let row_2 = min(row + 2u, last_row) * params.units;
    let row_3 = min(row + 3u, last_row) * params.units;
    let last_m = params.batch - 1u;
    let m_0 = m * params.columns;
    let m_1 = min(m + 1u, last_m) * params.columns;
    let m_2 = min(m + 2u, last_m) * params.columns;
    let m_3 = min(m + 3u, last_m) * params.columns;
    let m_4 = min(m + 4u, last_m) * params.columns;
    let m_5 = min(m + 5u, last_m) * params.columns;
    let m_6 = min(m + 6u, last_m) * params.columns;
    let m_7 = min(m + 7u, last_m) * params.columns;

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var octet = 0u; octet < 4u * params.units; octet++) {
        let w_0 = dequantize_octet(4u * row_0 + octet);
        let w_1 = dequantize_octet(4u * row_1 + octet);
        let w_2 = dequantize_octet(4u * row_2 + octet);
        let w_3 = dequantize_octet(4u * row_3 + octet);
        let a_0 = w_0[0];
        let a_1 = w_1[0];
        let a_2 = w_2[0];
        let a_3 = w_3[0];
        let k = 8u * octet;
        let a_x = vec4<f32>(a_0.x, a_1.x, a_2.x, a_3.x);
        let a_y = vec4<f32>(a_0.y, a_1.y, a_2.y, a_3.y);
        let a_z = vec4<f32>(a_0.z, a_1.z, a_2.z, a_3.z);
        let a_w = vec4<f32>(a_0.w, a_1.w, a_2.w, a_3.w);
        let b_0 = w_0[1];
        let b_1 = w_1[1];
        let b_2 = w_2[1];
        let b_3 = w_3[1];
        let b_x = vec4<f32>(b_0.x, b_1.x, b_2.x, b_3.x);
        let b_y = vec4<f32>(b_0.y, b_1.y, b_2.y, b_3.y);
        let b_z = vec4<f32>(b_0.z, b_1.z, b_2.z, b_3.z);
        let b_w = vec4<f32>(b_0.w, b_1.w, b_2.w, b_3.w);
        sum_0 = add_quad(sum_0, m_0, k, a_x, a_y, a_z, a_w);
        sum_0 = add_quad(sum_0, m_0, k + 4u, b_x, b_y, b_z, b_w);
        if (BATCH > 1u) {
            sum_1 = add_quad(sum_1, m_1, k, a_x, a_y, a_z, a_w);
            sum_1 = add_quad(sum_1, m_1, k + 4u, b_x, b_y, b_z, b_w);
        }
        if (BATCH > 2u) {
            sum_2 = add_quad(sum_2, m_2, k, a_x, a_y, a_z, a_w);
            sum_2 = add_quad(sum_2, m_2, k + 4u, b_x, b_y, b_z, b_w);
            sum_3 = add_quad(sum_3, m_3, k, a_x, a_y, a_z, a_w);
            sum_3 = add_quad(sum_3, m_3, k + 4u, b_x, b_y, b_z, b_w);
        }
        if (BATCH > 4u) {
            sum_4 = add_quad(sum_4, m_4, k, a_x, a_y, a_z, a_w);
            sum_4 = add_quad(sum_4, m_4, k + 4u, b_x, b_y, b_z, b_w);
            sum_5 = add_quad(sum_5, m_5, k, a_x, a_y, a_z, a_w);
            sum_5 = add_quad(sum_5, m_5, k + 4u, b_x, b_y, b_z, b_w);
            sum_6 = add_quad(sum_6, m_6, k, a_x, a_y, a_z, a_w);
            sum_6 = add_quad(sum_6, m_6, k + 4u, b_x, b_y, b_z, b_w);
            sum_7 = add_quad(sum_7, m_7, k, a_x, a_y, a_z, a_w);
            sum_7 = add_quad(sum_7, m_7, k + 4u, b_x, b_y, b_z, b_w);
        }
    }

    // One store in a loop: it may become long, and texts with a copy of it for each value compile for
    // minutes on CPU adapters.
    var sums = array<vec4<f32>, 8>(sum_0, sum_1, sum_2, sum_3, sum_4, sum_5, sum_6, sum_7);
    for (var k = 0u; k < BATCH && m + k < params.batch; k++) {
        for (var r = 0u; r < ROWS; r++) {
            store_value(m + k, row + r, sums[k][r]);
        }
    }
}
