// out[m, k] (+)= sum over n of x[m, start + n] * weight[n, k]: the gradient of a quantized linear
// with respect to its input
//
// A workgroup makes TILE_ROWS x TILE_COLUMNS of out, see matmul/quant/tile.
//
// x        (batch, x_columns); columns start to start + rows - 1 are read
// weight   the planes of rows rows; `units` units of 32 columns a row
// out      (batch, columns); added to if ACCUMULATE
// grid     one workgroup for a tile; tiles_k of them along k, then along m
// format   quant/q4_0 stands for any file of quant/ with its two functions
// turns    rows // STEP + 256
// uses     matmul/quant/tile, tile, quant/q4_0, quant/halves_direct, quant/planes

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

const TILE_ROWS = 32u;
const TILE_COLUMNS = 64u;
const LANE_ROWS = 4u;
const STEP = 16u;
const SLICES = 1u;
const COMPACT = false;
const X_FOUR = false;
const EDGES = true;
const ACROSS = true;
const ACCUMULATE = false;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load4_x(i: u32) -> vec4<f32> { return vec4(load_x(4*i), load_x(4*i+1), load_x(4*i+2), load_x(4*i+3)); }
fn load_out(i: u32) -> f32 { return out[i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<private> first_k: u32;

// Octets past the end read the last one and store nothing.
fn weight_octet(row: u32, octet: u32) -> array<vec4<f32>, 2> {
    let octets = 4u * params.units;
    return dequantize_octet(row * octets + min(first_k / 8u + octet, octets - 1u));
}

fn store_four(to: Target, row: u32, sums: vec4<f32>) {
    let m = to.m + row;
    if (m >= params.batch) {
        return;
    }
    store_value(m, to.n, sums.x);
    store_value(m, to.n + 1u, sums.y);
    store_value(m, to.n + 2u, sums.z);
    store_value(m, to.n + 3u, sums.w);
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
    let first_m = tile_m * TILE_ROWS;
    if (first_m >= params.batch) {
        return;
    }
    first_k = (group - tile_m * params.tiles_k) * TILE_COLUMNS;
    let origin = Origin(first_m, params.x_columns, params.start, params.rows);
    make_tile(origin, thread, first_k, params.rows);
}
