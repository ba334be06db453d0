// out[m, start + n] = sum over k of x[m, k] * weight[n, k] + bias[n], for many rows of x
//
// A workgroup makes TILE_M x 64 of out in steps of 16 columns of the weight; a thread makes PER_M x 4,
// its rows 8 apart and its columns 16 apart. Both tiles hold quads along k, padded to 5 quads a row,
// so that the threads of a warp meet no bank twice.
//
// x        (batch, columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (batch, out_columns); columns start to start + rows - 1 are written
// grid     one workgroup for a tile; tiles_n of them along n, then along m
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0

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

const PER_M = 4u;
const HAS_BIAS = false;

const WORKGROUP = 128u;
const TILE_M = 8u * PER_M;
const TILE_N = 64u;
const QUADS = 4u;
const STRIDE = QUADS + 1u;
const QUADS_A_THREAD = (TILE_M * QUADS + WORKGROUP - 1u) / WORKGROUP;

var<workgroup> x_tile: array<vec4<f32>, TILE_M * STRIDE>;
var<workgroup> w_tile: array<vec4<f32>, TILE_N * STRIDE>;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// Columns column to column + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, column: u32) -> vec4<f32> {
    if (m >= params.batch || column >= params.columns) {
        return vec4<f32>();
    }
    let at = m * params.columns + column;
    if (column + 4u <= params.columns) {
        return vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    }
    var quad = vec4<f32>(load_x(at), 0.0, 0.0, 0.0);
    if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
    if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    return quad;
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

    // What the next step needs is fetched into registers while this step computes.
    let steps = 2u * params.units;
    var next_w = dequantize_octet(w_first);
    var next_x: array<vec4<f32>, QUADS_A_THREAD>;
    for (var i = 0u; i < QUADS_A_THREAD; i++) {
        let at = thread + i * WORKGROUP;
        next_x[i] = quad_of_x(first_m + at / QUADS, 4u * (at % QUADS));
    }

    var sums: array<vec4<f32>, PER_M>;
    for (var step = 1u; step <= steps; step++) {
        for (var i = 0u; i < QUADS_A_THREAD; i++) {
            let at = thread + i * WORKGROUP;
            if (at < TILE_M * QUADS) {
                x_tile[(at / QUADS) * STRIDE + at % QUADS] = next_x[i];
            }
        }
        w_tile[w_row * STRIDE + 2u * w_octet] = next_w[0];
        w_tile[w_row * STRIDE + 2u * w_octet + 1u] = next_w[1];
        workgroupBarrier();
        if (step < steps) {
            next_w = dequantize_octet(w_first + 2u * step);
            for (var i = 0u; i < QUADS_A_THREAD; i++) {
                let at = thread + i * WORKGROUP;
                next_x[i] = quad_of_x(first_m + at / QUADS, 16u * step + 4u * (at % QUADS));
            }
        }
        for (var quad = 0u; quad < QUADS; quad++) {
            let w_0 = w_tile[column * STRIDE + quad];
            let w_1 = w_tile[(column + 16u) * STRIDE + quad];
            let w_2 = w_tile[(column + 32u) * STRIDE + quad];
            let w_3 = w_tile[(column + 48u) * STRIDE + quad];
            let k_0 = vec4<f32>(w_0.x, w_1.x, w_2.x, w_3.x);
            let k_1 = vec4<f32>(w_0.y, w_1.y, w_2.y, w_3.y);
            let k_2 = vec4<f32>(w_0.z, w_1.z, w_2.z, w_3.z);
            let k_3 = vec4<f32>(w_0.w, w_1.w, w_2.w, w_3.w);
            for (var i = 0u; i < PER_M; i++) {
                let a = x_tile[(row + 8u * i) * STRIDE + quad];
                var sum = fma(vec4<f32>(a.x), k_0, sums[i]);
                sum = fma(vec4<f32>(a.y), k_1, sum);
                sum = fma(vec4<f32>(a.z), k_2, sum);
                sums[i] = fma(vec4<f32>(a.w), k_3, sum);
            }
        }
        workgroupBarrier();
    }

    for (var i = 0u; i < PER_M; i++) {
        let m = first_m + row + 8u * i;
        for (var j = 0u; j < 4u; j++) {
            let n = first_n + column + 16u * j;
            if (m < params.batch && n < params.rows) {
                var value = sums[i][j];
                if (HAS_BIAS) {
                    value += load_bias(params.start + n);
                }
                store_out(m * params.out_columns + params.start + n, value);
            }
        }
    }
}
