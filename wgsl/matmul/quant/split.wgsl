// out[0, start + n] = sum over k of x[k] * weight[n, k] + bias[n], for one row of x
//
// For GPUs, where rows are long and few: as matmul/quant/vector, but several workgroups share the
// rows of the weight, each with a part of the columns, and the last of them to finish adds up what
// they made, in the order of the parts.
//
// x       (1, columns)
// weight  the planes of rows rows; `units` units of 32 columns a row
// bias    (rows) from bias_offset; read if HAS_BIAS
// out     (1, out_columns); columns start to start + rows - 1 are written
// status  holds the sums on their way; see partials
// grid    one workgroup for 4 * WORKGROUP / LANES rows of the weight and a part of `chunk` units, a
//         multiple of 8; the parts of the same rows are neighbours
// format  quant/q4_0 stands for any file of quant/ with its two functions
// lanes   quant_lanes multiplies with floats; matmul/quant/dots may stand in its place, with integers
// fuses   -> out
// joint   matmul/quant/vectors, matmul/quant/pair
// norms   norm/rms, norm/rms_held
// turns   units + parts + 512
// uses    matmul/quant/lanes, quant/q4_0, quant/halves, quant/planes, partial_fold, partials

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;

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
    parts: u32,
    chunk: u32,
    x_offset: u32,
    bias_offset: u32,
    eps: f32,
}
@group(1) @binding(0) var<uniform> params: Params;

alias T = f32;
const WORKGROUP = 64u;
const LANES = 32u;
const STEP = 32u;
const BATCH = 1u;
const NORM = false;
const PADDED = false;
const HAS_BIAS = false;
const WIDE = false;

const GROUP_ROWS = ROWS * (WORKGROUP / LANES);

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_norm_weight(i: u32) -> f32 { return 1.0; }
fn all_squares(thread: u32, squares: f32) -> f32 { return squares; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn to_bits(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }
fn from_bits(bits: vec2<u32>) -> T { return bitcast<T>(bits.x); }

fn load_units(units: vec4<u32>) -> Units {
    return Units(load_unit(units.x), load_unit(units.y), load_unit(units.z), load_unit(units.w));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let place = id.y * count.x + id.x;
    let block = place / params.parts;
    let part = place % params.parts;
    if (block * GROUP_ROWS >= params.rows) {
        return;
    }
    let row = block * GROUP_ROWS + thread / LANES * ROWS;
    // Rows past the end read the last row and store nothing.
    let rows = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    let begin = part * params.chunk;
    let end = min(begin + params.chunk, params.units);
    let products = multiply(thread, rows * params.units, begin, end);
    gather(thread, products.sums);
    let n = block * GROUP_ROWS + thread;
    let is_row = thread < GROUP_ROWS && n < params.rows;
    if (is_row) {
        let sum = total(0u, thread / ROWS * LANES, thread % ROWS);
        partial_leave_value(place * GROUP_ROWS + thread, sum);
    }
    // Lane 0, which is counted, must not come before the others have left their sums.
    workgroupBarrier();
    if (!partial_is_last(thread, block, params.parts) || !is_row) {
        return;
    }
    let first = block * params.parts * GROUP_ROWS + thread;
    var value = partial_fold(first, GROUP_ROWS, 0u, 1u, params.parts);
    if (HAS_BIAS) {
        value += load_bias(params.start + n);
    }
    store_out(params.start + n, value);
}
