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
// uses     quant/q4_0

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

    var sums: array<vec4<f32>, PER_M>;
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
            for (var i = 0u; i < PER_M; i++) {
                let a = x_tile[(row + 8u * i) * STRIDE + part];
                var sum = fma(vec4<f32>(a.x), w_0, sums[i]);
                sum = fma(vec4<f32>(a.y), w_1, sum);
                sum = fma(vec4<f32>(a.z), w_2, sum);
                sums[i] = fma(vec4<f32>(a.w), w_3, sum);
            }
        }
        workgroupBarrier();
    }

    for (var i = 0u; i < PER_M; i++) {
        let m = first_m + row + 8u * i;
        for (var j = 0u; j < 4u; j++) {
            let k = first_k + 4u * quad + j;
            if (m < params.batch && k < params.columns) {
                let at = m * params.columns + k;
                var value = sums[i][j];
                if (ACCUMULATE) {
                    value += load_out(at);
                }
                store_out(at, value);
            }
        }
    }
}
