// out[m, start + n] = sum over k of x[m, k] * weight[n, k] + bias[n], for at most BATCH rows of x
//
// With NORM there is one row of x, and it stands for x / sqrt(mean(x^2) + eps) * norm_weight.
// A workgroup is WORKGROUP / LANES groups of lanes; a group makes four rows of the weight, as
// matmul/quant/lanes says.
//
// x            (batch, columns)
// norm_weight  (columns), read only with NORM
// weight       the planes of rows rows; `units` units of 32 columns a row
// bias         (rows) from bias_offset; read if HAS_BIAS
// out          (batch, out_columns); columns start to start + rows - 1 are written
// grid         one workgroup for 4 * WORKGROUP / LANES rows of the weight
// format       quant/q4_0 stands for any file of quant/ with its two functions
// lanes        quant_lanes multiplies with floats; for one row of x matmul/quant/dots may stand in
//              its place, with integers
// fuses        -> out
// joint        matmul/quant/vectors, matmul/quant/pair
// norms        norm/rms, norm/rms_held
// turns        units + 512
// uses         matmul/quant/lanes, quant/q4_0, quant/halves, quant/planes

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

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
    x_offset: u32,
    norm_weight_offset: u32,
    bias_offset: u32,
    eps: f32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;
const LANES = 32u;
const STEP = 32u;
const BATCH = 1u;
const NORM = false;
const PADDED = false;
const HAS_BIAS = false;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_norm_weight(i: u32) -> f32 { return norm_weight[params.norm_weight_offset + i]; }
fn all_squares(thread: u32, squares: f32) -> f32 { return squares; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

fn load_units(units: vec4<u32>) -> Units {
    return Units(load_unit(units.x), load_unit(units.y), load_unit(units.z), load_unit(units.w));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let group = thread / LANES;
    let row = ((id.y * count.x + id.x) * (WORKGROUP / LANES) + group) * ROWS;
    // Rows past the end read the last row and store nothing.
    let rows = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    let products = multiply(thread, rows * params.units, 0u, params.units);
    let scale = norm_scale(thread, products.squares);
    gather(thread, products.sums);
    for (var task = lane; task < ROWS * BATCH; task += LANES) {
        let m = task / ROWS;
        let r = task % ROWS;
        if (m < params.batch && row + r < params.rows) {
            var value = scale * total(m, group * LANES, r);
            if (HAS_BIAS) {
                value += load_bias(params.start + row + r);
            }
            store_out(m * params.out_columns + params.start + row + r, value);
        }
    }
}
