// out[m, k] (+)= sum over n of x[m, start + n] * weight[n, k]: the gradient of a quantized linear
// with respect to its input
//
// A workgroup makes TILE_M x 64 of out in steps of 16 rows of the weight; a thread makes PER_M x 4,
// its rows 8 apart, its four columns one quad.
//
// x        (batch, x_columns); columns start to start + rows - 1 are read
// weight   the planes of rows rows; `units` units of 32 columns a row
// out      (batch, columns); added to if ACCUMULATE
// grid     one workgroup for a tile; tiles_k of them along k, then along m
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0, quant/halves, quant/planes

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

struct Params {
    batch: u32,
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    start: u32,
    x_columns: u32,
    tiles_k: u32,
    x_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

// 2, 4 or 8.
const PER_M = 4u;
const ACCUMULATE = false;

const WORKGROUP = 128u;
const TILE_M = 8u * PER_M;
const QUADS = 16u;
const STEP = 16u;
const STRIDE = STEP / 4u + 1u;

var<workgroup> x_tile: array<vec4<f32>, TILE_M * STRIDE>;
var<workgroup> w_tile: array<vec4<f32>, STEP * QUADS>;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_out(i: u32) -> f32 { return out[i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// Columns start + n to start + n + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, n: u32) -> vec4<f32> {
    var quad = vec4<f32>();
    if (m < params.batch && n < params.rows) {
        let at = m * params.x_columns + params.start + n;
        quad.x = load_x(at);
        if (n + 1u < params.rows) { quad.y = load_x(at + 1u); }
        if (n + 2u < params.rows) { quad.z = load_x(at + 2u); }
        if (n + 3u < params.rows) { quad.w = load_x(at + 3u); }
    }
    return quad;
}

// sum + the products of a quad of x, along n, with four quads along k.
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

// Columns k to k + 3 of row m of out.
fn store_row(m: u32, k: u32, sums: vec4<f32>) {
    if (m >= params.batch) {
        return;
    }
    store_value(m, k, sums.x);
    store_value(m, k + 1u, sums.y);
    store_value(m, k + 2u, sums.z);
    store_value(m, k + 3u, sums.w);
}

fn store_value(m: u32, k: u32, sum: f32) {
    if (k >= params.columns) {
        return;
    }
    let at = m * params.columns + k;
    var value = sum;
    if (ACCUMULATE) {
        value += load_out(at);
    }
    store_out(at, value);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let group = id.y * count.x + id.x;
    let tile_m = group / params.tiles_k;
    let first_m = tile_m * TILE_M;
    let first_k = (group - tile_m * params.tiles_k) * 64u;
    if (first_m >= params.batch) {
        return;
    }
    let quad = thread % 16u;
    let row = thread / 16u;
    // The octet of the weight tile that this thread unpacks: eight to a row.
    let w_row = thread / 8u;
    let w_octet = thread % 8u;
    let octets = 4u * params.units;
    let w_column = min(first_k / 8u + w_octet, octets - 1u);

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var first_n = 0u; first_n < params.rows; first_n += STEP) {
        for (var i = thread; i < TILE_M * (STEP / 4u); i += WORKGROUP) {
            let m = i / (STEP / 4u);
            let part = i % (STEP / 4u);
            x_tile[m * STRIDE + part] = quad_of_x(first_m + m, first_n + 4u * part);
        }
        let octet = dequantize_octet(min(first_n + w_row, params.rows - 1u) * octets + w_column);
        w_tile[w_row * QUADS + 2u * w_octet] = octet[0];
        w_tile[w_row * QUADS + 2u * w_octet + 1u] = octet[1];
        workgroupBarrier();
        for (var part = 0u; part < STEP / 4u; part++) {
            let w_0 = w_tile[4u * part * QUADS + quad];
            let w_1 = w_tile[(4u * part + 1u) * QUADS + quad];
            let w_2 = w_tile[(4u * part + 2u) * QUADS + quad];
            let w_3 = w_tile[(4u * part + 3u) * QUADS + quad];
            let at_x = row * STRIDE + part;
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
    let k = first_k + 4u * quad;
    store_row(m, k, sum_0);
    store_row(m + 8u, k, sum_1);
    if (PER_M > 2u) {
        store_row(m + 16u, k, sum_2);
        store_row(m + 24u, k, sum_3);
    }
    if (PER_M > 4u) {
        store_row(m + 32u, k, sum_4);
        store_row(m + 40u, k, sum_5);
        store_row(m + 48u, k, sum_6);
        store_row(m + 56u, k, sum_7);
    }
}
