// out_k[m, n] = sum over c of x[m, c] * weight_k[n, c], for two or three weights of one format and
//   many rows of x
//
// A workgroup makes TILE_ROWS x TILE_COLUMNS of one of the results, see matmul/quant/tile.
//
// x         (batch, columns)
// weight_k  the planes of a weight; `units` units of 32 columns a row. Of planes_k the first number
//           counts its rows, the others are the first words of its planes 1 to 3
// out_k     (batch, rows of weight k); of two weights the third has no rows
// grid      one workgroup for a tile: those of weight 0, then of weight 1, then of weight 2, and so
//           on for the next TILE_ROWS rows of x
// format    quant/q4_0 stands for any file of quant/ with its two functions
// fuses     -> out_0, out_1, out_2
// turns     32 * units // STEP + 256
// uses      matmul/quant/tile, tile, quant/q4_0, quant/halves_direct

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight_0: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> weight_1: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_2: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out_0: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_1: array<f32>;
@group(0) @binding(6) var<storage, read_write> out_2: array<f32>;

struct Params {
    planes_0: vec4<u32>,
    planes_1: vec4<u32>,
    planes_2: vec4<u32>,
    batch: u32,
    columns: u32,
    units: u32,
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
fn store_out_0(i: u32, value: f32) { out_0[i] = value; }
fn store_out_1(i: u32, value: f32) { out_1[i] = value; }
fn store_out_2(i: u32, value: f32) { out_2[i] = value; }

// The weight of this workgroup, its rows, and the first of them that the workgroup makes.
var<private> own: u32;
var<private> all_rows: u32;
var<private> first_n: u32;
// The weight that is read: always a known number, so that a load does not choose between buffers.
var<private> current: u32;

fn plane_row(i: u32) -> vec4<u32> {
    if (current == 1u) { return weight_1[i]; }
    if (current == 2u) { return weight_2[i]; }
    return weight_0[i];
}

fn plane_word(i: u32) -> u32 {
    if (current == 1u) { return weight_1[i >> 2u][i & 3u]; }
    if (current == 2u) { return weight_2[i >> 2u][i & 3u]; }
    return weight_0[i >> 2u][i & 3u];
}

fn plane_start(plane: u32) -> u32 {
    if (current == 1u) { return params.planes_1[plane]; }
    if (current == 2u) { return params.planes_2[plane]; }
    return params.planes_0[plane];
}

// Rows past the end read the last row and store nothing.
fn weight_octet(row: u32, octet: u32) -> array<vec4<f32>, 2> {
    let at = min(first_n + row, all_rows - 1u) * params.units * 4u + octet;
    if (own == 1u) {
        current = 1u;
        return dequantize_octet(at);
    }
    if (own == 2u) {
        current = 2u;
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
    store_value(m, to.n, sums.x);
    store_value(m, to.n + COLUMN_LANES, sums.y);
    store_value(m, to.n + 2u * COLUMN_LANES, sums.z);
    store_value(m, to.n + 3u * COLUMN_LANES, sums.w);
}

fn store_value(m: u32, n: u32, value: f32) {
    if (n >= all_rows) {
        return;
    }
    let at = m * all_rows + n;
    if (own == 0u) {
        store_out_0(at, value);
    } else if (own == 1u) {
        store_out_1(at, value);
    } else {
        store_out_2(at, value);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let rows = vec3<u32>(params.planes_0.x, params.planes_1.x, params.planes_2.x);
    let tiles = (rows + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    let all_tiles = tiles.x + tiles.y + tiles.z;
    let group = id.y * count.x + id.x;
    let first_m = group / all_tiles * TILE_ROWS;
    if (first_m >= params.batch) {
        return;
    }
    var place = group % all_tiles;
    var k = 0u;
    if (place >= tiles.x + tiles.y) {
        place -= tiles.x + tiles.y;
        k = 2u;
    } else if (place >= tiles.x) {
        place -= tiles.x;
        k = 1u;
    }
    own = k;
    all_rows = rows[k];
    first_n = place * TILE_COLUMNS;
    let origin = Origin(first_m, params.columns, 0u, params.columns);
    make_tile(origin, thread, first_n, 32u * params.units);
}
