// out_k[n] = sum over c of x[c] * weight_k[n, c], for two weights of one format and as many rows,
//   and one row of x, without workgroup memory; both results of an n are at hand together
//
// An invocation makes two rows of each weight, otherwise as in matmul/quant/direct_vector.
//
// x         (columns)
// weight_k  the planes of rows rows; `units` units of 32 columns a row
// out_k     (rows)
// grid      one invocation for 2 rows
// format    quant/q4_0 stands for any file of quant/ with its two functions
// fuses     -> out_0, out_1
// turns     units + 64
// uses      matmul/quant/direct_rows, quant/q4_0, quant/halves_direct

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight_0: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> weight_1: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out_0: array<f32>;
@group(0) @binding(4) var<storage, read_write> out_1: array<f32>;

struct Params {
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    x_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const PADDED = false;

const WORKGROUP = 16u;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_pair(i: u32, a: f32, b: f32) { out_0[i] = a; out_1[i] = b; }

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

fn load_units(units: vec4<u32>) -> Units {
    current = 0u;
    let a = load_unit(units.x);
    let b = load_unit(units.y);
    current = 1u;
    return Units(a, b, load_unit(units.z), load_unit(units.w));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = 2u * ((id.y * count.x + id.x) * WORKGROUP + lane);
    if (row >= params.rows) {
        return;
    }
    // A row past the end repeats the last row and is not stored.
    let rows = min(row + vec4<u32>(0u, 1u, 0u, 1u), vec4<u32>(params.rows - 1u));
    let sums = row_sums(rows * params.units);
    store_pair(row, sums.x, sums.z);
    if (row + 1u < params.rows) {
        store_pair(row + 1u, sums.y, sums.w);
    }
}
