// out_k[m, n] = sum over c of x[m, c] * weight_k[n, c], for two or three weights of one format and
//   at most BATCH rows of x
//
// With NORM there is one row of x, and it stands for x / sqrt(mean(x^2) + eps) * norm_weight.
// A workgroup makes rows of one weight, as in matmul/quant/vector.
//
// x            (batch, columns)
// norm_weight  (columns), read only with NORM
// weight_k     the planes of a weight; `units` units of 32 columns a row. Of planes_k the first
//              number counts its rows, the others are the first words of its planes 1 to 3
// out_k        (batch, rows of weight k); of two weights the third has no rows
// grid         one workgroup for 4 * WORKGROUP / LANES rows of a weight: first those of weight 0,
//              then of weight 1, then of weight 2
// format       quant/q4_0 stands for any file of quant/ with its two functions
// lanes        quant_lanes multiplies with floats; for one row of x matmul/quant/dots may stand in
//              its place, with integers
// fuses        -> out_0, out_1, out_2
// turns        units + 512
// uses         matmul/quant/lanes, quant/q4_0, quant/halves

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(2) var<storage, read> weight_0: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> weight_1: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> weight_2: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> out_0: array<f32>;
@group(0) @binding(6) var<storage, read_write> out_1: array<f32>;
@group(0) @binding(7) var<storage, read_write> out_2: array<f32>;

struct Params {
    planes_0: vec4<u32>,
    planes_1: vec4<u32>,
    planes_2: vec4<u32>,
    batch: u32,
    columns: u32,
    units: u32,
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
fn store_out_0(i: u32, value: f32) { out_0[i] = value; }
fn store_out_1(i: u32, value: f32) { out_1[i] = value; }
fn store_out_2(i: u32, value: f32) { out_2[i] = value; }

// The weight of this workgroup, and the one that is read: always a known number, so that a load
// does not choose between buffers.
var<private> own: u32;
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

fn planes(k: u32) -> vec4<u32> {
    if (k == 1u) { return params.planes_1; }
    if (k == 2u) { return params.planes_2; }
    return params.planes_0;
}

fn plane_start(plane: u32) -> u32 {
    return planes(current)[plane];
}

fn four_units(units: vec4<u32>) -> Units {
    return Units(load_unit(units.x), load_unit(units.y), load_unit(units.z), load_unit(units.w));
}

fn load_units(units: vec4<u32>) -> Units {
    if (own == 1u) {
        current = 1u;
        return four_units(units);
    }
    if (own == 2u) {
        current = 2u;
        return four_units(units);
    }
    current = 0u;
    return four_units(units);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let group = thread / LANES;
    let per = ROWS * (WORKGROUP / LANES);
    let groups_0 = (params.planes_0.x + per - 1u) / per;
    let groups_1 = (params.planes_1.x + per - 1u) / per;
    var place = id.y * count.x + id.x;
    var k = 0u;
    if (place >= groups_0 + groups_1) {
        place -= groups_0 + groups_1;
        k = 2u;
    } else if (place >= groups_0) {
        place -= groups_0;
        k = 1u;
    }
    let all_rows = planes(k).x;
    if (place * per >= all_rows) {
        return;
    }
    own = k;
    let row = place * per + group * ROWS;
    // Rows past the end read the last row and store nothing.
    let rows = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(all_rows - 1u));
    let products = multiply(thread, rows * params.units, 0u, params.units);
    let scale = norm_scale(thread, products.squares);
    gather(thread, products.sums);
    for (var task = lane; task < ROWS * BATCH; task += LANES) {
        let m = task / ROWS;
        let r = task % ROWS;
        if (m < params.batch && row + r < all_rows) {
            let at = m * all_rows + row + r;
            let value = scale * total(m, group * LANES, r);
            if (k == 0u) {
                store_out_0(at, value);
            } else if (k == 1u) {
                store_out_1(at, value);
            } else {
                store_out_2(at, value);
            }
        }
    }
}
