// out_k[m, n] = sum over c of x[m, c] * weight_k[n, c], for two weights of one format and as many
//   rows, and at most BATCH rows of x; both results of an n are at hand together
//
// With NORM there is one row of x, and it stands for x / sqrt(mean(x^2) + eps) * norm_weight.
// A group of lanes makes two rows of each weight, otherwise as in matmul/quant/vector.
//
// x            (batch, columns)
// norm_weight  (columns), read only with NORM
// weight_k     the planes of rows rows; `units` units of 32 columns a row
// out_k        (batch, rows)
// grid         one workgroup for 2 * WORKGROUP / LANES rows
// format       quant/q4_0 stands for any file of quant/ with its two functions
// lanes        quant_lanes multiplies with floats; for one row of x matmul/quant/dots may stand in
//              its place, with integers
// fuses        -> out_0, out_1
// turns        units + 512
// uses         matmul/quant/lanes, quant/q4_0, quant/halves

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(2) var<storage, read> weight_0: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_1: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out_0: array<f32>;
@group(0) @binding(5) var<storage, read_write> out_1: array<f32>;

struct Params {
    batch: u32,
    rows: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    x_offset: u32,
    norm_weight_offset: u32,
    eps: f32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;
const LANES = 32u;
const STEP = 32u;
const BATCH = 1u;
const NORM = false;
const PADDED = false;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_norm_weight(i: u32) -> f32 { return norm_weight[params.norm_weight_offset + i]; }
fn all_squares(thread: u32, squares: f32) -> f32 { return squares; }
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
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let group = thread / LANES;
    let row = 2u * ((id.y * count.x + id.x) * (WORKGROUP / LANES) + group);
    // Rows past the end read the last row and store nothing.
    let rows = min(row + vec4<u32>(0u, 1u, 0u, 1u), vec4<u32>(params.rows - 1u));
    let products = multiply(thread, rows * params.units, 0u, params.units);
    let scale = norm_scale(thread, products.squares);
    gather(thread, products.sums);
    for (var task = lane; task < 2u * BATCH; task += LANES) {
        let m = task / 2u;
        let r = task % 2u;
        if (m < params.batch && row + r < params.rows) {
            let a = scale * total(m, group * LANES, r);
            let b = scale * total(m, group * LANES, r + 2u);
            store_pair(m * params.rows + row + r, a, b);
        }
    }
}
