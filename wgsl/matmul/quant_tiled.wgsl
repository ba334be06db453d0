// out[m, start + n] = sum over k of x[m, k] * weight[n, k] + bias[n], for many rows of x
//
// A workgroup makes TILE_M x 64 of out in steps of 16 columns of the weight; a thread makes PER_M x
// 4, its rows 8 apart and its columns 16 apart. Both tiles hold quads along k, padded to 5 quads a
// row, so that neighbouring threads meet no bank twice.
//
// x        (batch, columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (batch, out_columns); columns start to start + rows - 1 are written
// grid     one workgroup for a tile; tiles_n of them along n, then along m
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0, quant/halves, quant/planes

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
    tiles_n: u32,
    x_offset: u32,
    bias_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

// 2, 4 or 8.
const PER_M = 4u;
const HAS_BIAS = false;

const WORKGROUP = 128u;
const TILE_M = 8u * PER_M;
const TILE_N = 64u;
const QUADS = 4u;
const STRIDE = QUADS + 1u;

var<workgroup> x_tile: array<vec4<f32>, TILE_M * STRIDE>;
var<workgroup> w_tile: array<vec4<f32>, TILE_N * STRIDE>;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// Columns column to column + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, column: u32) -> vec4<f32> {
    let at = m * params.columns + column;
    if (m < params.batch && column + 4u <= params.columns) {
        return vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    }
    var quad = vec4<f32>();
    if (m < params.batch) {
        if (column < params.columns) { quad.x = load_x(at); }
        if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
        if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    }
    return quad;
}

// sum + the products of a quad of x, along k, with four quads along n.
fn add_quad(
    sum: vec4<f32>,
    x_quad: vec4<f32>,
    w_0: vec4<f32>,
    w_1: vec4<f32>,
    w_2: vec4<f32>,
    w_3: vec4<f32>,
) -> vec4<f32> {
    let first = fma(vec4<f32>(x_quad.y), w_1, fma(vec4<f32>(x_quad.x), w_0, sum));
    return fma(vec4<f32>(x_quad.w), w_3, fma(vec4<f32>(x_quad.z), w_2, first));
}

// Columns n, n + 16, n + 32 and n + 48 of row m of out.
fn store_row(m: u32, n: u32, sums: vec4<f32>) {
    if (m >= params.batch) {
        return;
    }
    store_value(m, n, sums.x);
    store_value(m, n + 16u, sums.y);
    store_value(m, n + 32u, sums.z);
    store_value(m, n + 48u, sums.w);
}

fn store_value(m: u32, n: u32, sum: f32) {
    if (n >= params.rows) {
        return;
    }
    var value = sum;
    if (HAS_BIAS) {
        value += load_bias(params.start + n);
    }
    store_out(m * params.out_columns + params.start + n, value);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let group = id.y * count.x + id.x;
    let tile_m = group / params.tiles_n;
    let first_m = tile_m * TILE_M;
    let first_n = (group - tile_m * params.tiles_n) * TILE_N;
    if (first_m >= params.batch) {
        return;
    }
    let column = thread % 16u;
    let row = thread / 16u;
    // The octet of the weight tile that this thread unpacks: lanes 2i and 2i + 1 share a row.
    let w_row = thread / 2u;
    let w_octet = thread % 2u;
    let w_first = min(first_n + w_row, params.rows - 1u) * params.units * 4u + w_octet;

    // What the next step needs is fetched into registers while this step computes. Sums are named,
    // not an array: an array indexed in a loop would live in memory.
    let steps = 2u * params.units;
    let x_row = thread / QUADS;
    let x_quad = thread % QUADS;
    var next_w = dequantize_octet(w_first);
    var next_x_0 = quad_of_x(first_m + x_row, 4u * x_quad);
    var next_x_1 = vec4<f32>();
    if (PER_M > 4u) {
        next_x_1 = quad_of_x(first_m + x_row + 32u, 4u * x_quad);
    }
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var step = 1u; step <= steps; step++) {
        if (x_row < TILE_M) {
            x_tile[x_row * STRIDE + x_quad] = next_x_0;
        }
        if (PER_M > 4u) {
            x_tile[(x_row + 32u) * STRIDE + x_quad] = next_x_1;
        }
        w_tile[w_row * STRIDE + 2u * w_octet] = next_w[0];
        w_tile[w_row * STRIDE + 2u * w_octet + 1u] = next_w[1];
        workgroupBarrier();
        if (step < steps) {
            next_w = dequantize_octet(w_first + 2u * step);
            next_x_0 = quad_of_x(first_m + x_row, 16u * step + 4u * x_quad);
            if (PER_M > 4u) {
                next_x_1 = quad_of_x(first_m + x_row + 32u, 16u * step + 4u * x_quad);
            }
        }
        for (var quad = 0u; quad < QUADS; quad++) {
            let at_w = column * STRIDE + quad;
            let at_x = row * STRIDE + quad;
            let c_0 = w_tile[at_w];
            let c_1 = w_tile[at_w + 16u * STRIDE];
            let c_2 = w_tile[at_w + 32u * STRIDE];
            let c_3 = w_tile[at_w + 48u * STRIDE];
            let w_0 = vec4<f32>(c_0.x, c_1.x, c_2.x, c_3.x);
            let w_1 = vec4<f32>(c_0.y, c_1.y, c_2.y, c_3.y);
            let w_2 = vec4<f32>(c_0.z, c_1.z, c_2.z, c_3.z);
            let w_3 = vec4<f32>(c_0.w, c_1.w, c_2.w, c_3.w);
            sum_0 = add_quad(sum_0, x_tile[at_x], w_0, w_1, w_2, w_3);
            sum_1 = add_quad(sum_1, x_tile[at_x + 8u * STRIDE], w_0, w_1, w_2, w_3);
            if (PER_M > 2u) {
                sum_2 = add_quad(sum_2, x_tile[at_x + 16u * STRIDE], w_0, w_1, w_2, w_3);
                sum_3 = add_quad(sum_3, x_tile[at_x + 24u * STRIDE], w_0, w_1, w_2, w_3);
            }
            if (PER_M > 4u) {
                sum_4 = add_quad(sum_4, x_tile[at_x + 32u * STRIDE], w_0, w_1, w_2, w_3);
                sum_5 = add_quad(sum_5, x_tile[at_x + 40u * STRIDE], w_0, w_1, w_2, w_3);
                sum_6 = add_quad(sum_6, x_tile[at_x + 48u * STRIDE], w_0, w_1, w_2, w_3);
                sum_7 = add_quad(sum_7, x_tile[at_x + 56u * STRIDE], w_0, w_1, w_2, w_3);
            }
        }
        workgroupBarrier();
    }

    let m = first_m + row;
    let n = first_n + column;
    store_row(m, n, sum_0);
    store_row(m + 8u, n, sum_1);
    if (PER_M > 2u) {
        store_row(m + 16u, n, sum_2);
        store_row(m + 24u, n, sum_3);
    }
    if (PER_M > 4u) {
        store_row(m + 32u, n, sum_4);
        store_row(m + 40u, n, sum_5);
        store_row(m + 48u, n, sum_6);
        store_row(m + 56u, n, sum_7);
    }
}
