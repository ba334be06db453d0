// out[m, start + n] = sum over k of x[m, k] * weight[n, k] + bias[n], for many rows of x
//
// A workgroup makes TILE_ROWS x TILE_COLUMNS of out, see matmul/quant/tile.
//
// x        (batch, columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (batch, out_columns); columns start to start + rows - 1 are written
// grid     one workgroup for a tile; tiles_n of them along n, then along m
// format   quant/q4_0 stands for any file of quant/ with its two functions
// fuses    -> out
// joint    matmul/quant/tiles, matmul/quant/tiled_pair
// turns    32 * units // STEP + 256
// uses     matmul/quant/tile, tile, quant/q4_0, quant/halves_direct, quant/planes

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

const TILE_ROWS = 32u;
const TILE_COLUMNS = 64u;
const LANE_ROWS = 4u;
const STEP = 16u;
const SLICES = 1u;
const COMPACT = false;
const X_FOUR = false;
const EDGES = true;
const ACROSS = false;
const HAS_BIAS = false;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load4_x(i: u32) -> vec4<f32> { return vec4(load_x(4*i), load_x(4*i+1), load_x(4*i+2), load_x(4*i+3)); }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<private> first_n: u32;

// Rows past the end read the last row and store nothing.
fn weight_octet(row: u32, octet: u32) -> array<vec4<f32>, 2> {
    return dequantize_octet(min(first_n + row, params.rows - 1u) * params.units * 4u + octet);
}

fn store_four(to: Target, row: u32, sums: vec4<f32>) {
    let m = to.m + row;
    if (m >= params.batch) {
        return;
    }
    store_value(m, to.n, sums.x);
    store_value(m, to.n + COLUMN_LANES, sums.y);
    store_value(m, to.n + 2u * COLUMN_LANES, sums.z);
    store_value(m, to.n + 3u * COLUMN_LANES, sums.w);
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
    let first_m = tile_m * TILE_ROWS;
    if (first_m >= params.batch) {
        return;
    }
    first_n = (group - tile_m * params.tiles_n) * TILE_COLUMNS;
    let origin = Origin(first_m, params.columns, 0u, params.columns);
    make_tile(origin, thread, first_n, 32u * params.units);
}
