// out[z, i, start + j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[start + j], without workgroup
//   memory
//
// For adapters that run on a CPU, where a barrier switches between all invocations of a workgroup
// and costs more than reading a and b again. An invocation makes ROWS x 8 outputs.
//
// The depth may be a piece of a longer one: l counts from `begin` on.
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z %
//       batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (out_columns)             read only with HAS_BIAS
// out   (batch, rows, out_columns)  contiguous; columns start to start + columns - 1 are written
// grid  one invocation per (batch, ROWS rows, 8 columns), neighbours along the columns
// fuses -> out
// turns depth

// 1, 2, 4 or 8.
const ROWS = 8u;
const HAS_BIAS = false;

const WORKGROUP = 16u;
const COLUMNS = 8u;

struct Params {
    a_offset: u32,
    b_offset: u32,
    bias_offset: u32,
    batch: u32,
    begin: u32,
    start: u32,
    out_columns: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    batch_inner: u32,
    a_outer: u32,
    a_inner: u32,
    a_row: u32,
    a_depth: u32,
    b_outer: u32,
    b_inner: u32,
    b_depth: u32,
    b_column: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_a(i: u32) -> f32 { return a[params.a_offset + i]; }
fn load_b(i: u32) -> f32 { return b[params.b_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// The start of row `row` of a; rows past the end repeat the last one and are not stored.
fn row_at(base: u32, row: u32) -> u32 {
    return base + min(row, params.rows - 1u) * params.a_row;
}

// Where four columns of b begin; columns past the end repeat the last one and are not stored.
fn columns_at(base: u32, column: u32) -> vec4<u32> {
    let columns = vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u);
    return base + min(columns, vec4<u32>(params.columns - 1u)) * params.b_column;
}

fn load_four(at: vec4<u32>) -> vec4<f32> {
    return vec4<f32>(load_b(at.x), load_b(at.y), load_b(at.z), load_b(at.w));
}

fn store_value(row: u32, column: u32, sum: f32) {
    if (column >= params.columns) {
        return;
    }
    var value = sum;
    if (HAS_BIAS) {
        value += load_bias(params.start + column);
    }
    store_out(row * params.out_columns + params.start + column, value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    let across = (params.columns + COLUMNS - 1u) / COLUMNS;
    let down = (params.rows + ROWS - 1u) / ROWS;
    let column = place % across * COLUMNS;
    let row = place / across % down * ROWS;
    let batch = place / (across * down);
    if (batch >= params.batch) {
        return;
    }
    let outer = batch / params.batch_inner;
    let inner = batch % params.batch_inner;
    let a_base = outer * params.a_outer + inner * params.a_inner + params.begin * params.a_depth;
    let b_base = outer * params.b_outer + inner * params.b_inner + params.begin * params.b_depth;
    let a_0 = row_at(a_base, row);
    let a_1 = row_at(a_base, row + 1u);
    let a_2 = row_at(a_base, row + 2u);
    let a_3 = row_at(a_base, row + 3u);
    let a_4 = row_at(a_base, row + 4u);
    let a_5 = row_at(a_base, row + 5u);
    let a_6 = row_at(a_base, row + 6u);
    let a_7 = row_at(a_base, row + 7u);
    let b_left = columns_at(b_base, column);
    let b_right = columns_at(b_base, column + 4u);

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var left_0 = vec4<f32>();
    var right_0 = vec4<f32>();
    var left_1 = vec4<f32>();
    var right_1 = vec4<f32>();
    var left_2 = vec4<f32>();
    var right_2 = vec4<f32>();
    var left_3 = vec4<f32>();
    var right_3 = vec4<f32>();
    var left_4 = vec4<f32>();
    var right_4 = vec4<f32>();
    var left_5 = vec4<f32>();
    var right_5 = vec4<f32>();
    var left_6 = vec4<f32>();
    var right_6 = vec4<f32>();
    var left_7 = vec4<f32>();
    var right_7 = vec4<f32>();
    for (var l = 0u; l < params.depth; l++) {
        let left = load_four(b_left + l * params.b_depth);
        let right = load_four(b_right + l * params.b_depth);
        let at = l * params.a_depth;
        let value_0 = load_a(a_0 + at);
        left_0 += value_0 * left;
        right_0 += value_0 * right;
        if (ROWS > 1u) {
            let value_1 = load_a(a_1 + at);
            left_1 += value_1 * left;
            right_1 += value_1 * right;
        }
        if (ROWS > 2u) {
            let value_2 = load_a(a_2 + at);
            left_2 += value_2 * left;
            right_2 += value_2 * right;
            let value_3 = load_a(a_3 + at);
            left_3 += value_3 * left;
            right_3 += value_3 * right;
        }
        if (ROWS > 4u) {
            let value_4 = load_a(a_4 + at);
            left_4 += value_4 * left;
            right_4 += value_4 * right;
            let value_5 = load_a(a_5 + at);
            left_5 += value_5 * left;
            right_5 += value_5 * right;
            let value_6 = load_a(a_6 + at);
            left_6 += value_6 * left;
            right_6 += value_6 * right;
            let value_7 = load_a(a_7 + at);
            left_7 += value_7 * left;
            right_7 += value_7 * right;
        }
    }

    // One store in a loop: it may become long, and texts with a copy of it for each value compile for
    // minutes on CPU adapters.
    var sums = array<vec4<f32>, 16>(
        left_0, right_0, left_1, right_1, left_2, right_2, left_3, right_3,
        left_4, right_4, left_5, right_5, left_6, right_6, left_7, right_7,
    );
    for (var k = 0u; k < ROWS && row + k < params.rows; k++) {
        let line = batch * params.rows + row + k;
        for (var c = 0u; c < COLUMNS; c++) {
            store_value(line, column + c, sums[2u * k + c / 4u][c % 4u]);
        }
    }
}
