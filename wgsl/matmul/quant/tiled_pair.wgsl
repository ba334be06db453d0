// out_k[m, n] = sum over c of x[m, c] * weight_k[n, c], for two weights of one format and as many
//   rows, and many rows of x; both results of an element are at hand together
//
// A workgroup makes TILE_ROWS x TILE_COLUMNS / 2 of both results: half of its columns are rows of
// weight_0, half of weight_1, so that a lane has the same columns of both. See matmul/quant/tile.
//
// x         (batch, columns)
// weight_k  the planes of rows rows; `units` units of 32 columns a row
// out_k     (batch, rows)
// grid      one workgroup for a tile; tiles_n of them along n, then along m
// format    quant/q4_0 stands for any file of quant/ with its two functions
// fuses     -> out_0, out_1
// turns     32 * units // STEP + 256
// uses      matmul/quant/tile, tile, quant/q4_0, quant/halves_direct

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight_0: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> weight_1: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out_0: array<f32>;
@group(0) @binding(4) var<storage, read_write> out_1: array<f32>;

struct Params {
    batch: u32,
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    tiles_n: u32,
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
const ACROSS = false;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load4_x(i: u32) -> vec4<f32> { return vec4(load_x(4*i), load_x(4*i+1), load_x(4*i+2), load_x(4*i+3)); }
fn store_pair(i: u32, a: f32, b: f32) { out_0[i] = a; out_1[i] = b; }

var<private> first_n: u32;
// The weight that is read: always a known number, so that a load does not choose between buffers.
var<private> current: u32;

fn plane_row(i: u32) -> vec4<u32> {
    if (current == 1u) { return weight_1[i]; }
    return weight_0[i];
}

fn plane_word(i: u32) -> u32 {
    if (current == 1u) { return weight_1[i >> 2u][i & 3u]; }
    return weight_0[i >> 2u][i & 3u];
}

// Weights of one shape lie alike.
fn plane_start(plane: u32) -> u32 {
    return vec4<u32>(0u, params.plane_1, params.plane_2, params.plane_3)[plane];
}

// Rows past the end read the last row and store nothing.
fn weight_octet(row: u32, octet: u32) -> array<vec4<f32>, 2> {
    let n = min(first_n + row % (TILE_COLUMNS / 2u), params.rows - 1u);
    let at = n * params.units * 4u + octet;
    if (row >= TILE_COLUMNS / 2u) {
        current = 1u;
        return dequantize_octet(at);
    }
    current = 0u;
    return dequantize_octet(at);
}

fn store_four(to: Target, row: u32, sums: vec4<f32>) {
    let m = to.m + row;
    if (m >= params.batch) {
        return;
    }
    store_both(m, to.n, sums.x, sums.z);
    store_both(m, to.n + COLUMN_LANES, sums.y, sums.w);
}

fn store_both(m: u32, n: u32, a: f32, b: f32) {
    if (n < params.rows) {
        store_pair(m * params.rows + n, a, b);
    }
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
    first_n = (group - tile_m * params.tiles_n) * (TILE_COLUMNS / 2u);
    let origin = Origin(first_m, params.columns, 0u, params.columns);
    make_tile(origin, thread, first_n, 32u * params.units);
}
