// out[m, start + n] = sum over k of x[m, k] * weight[n, k] + bias[n], for at most BATCH rows of x
//
// A workgroup is WORKGROUP / LANES groups of lanes; a group makes ROWS = 4 rows of the weight. Its
// lanes take units of 32 columns in turn, so that neighbours read neighbouring 16-byte words, and
// use a unit's columns of x for all four rows. x comes through workgroup memory, stored by quads
// with one quad of padding, so that the lanes of a group meet no bank twice.
//
// x        (batch, columns)
// weight   the planes of rows rows; `units` units of 32 columns a row
// bias     (rows) from bias_offset; read if HAS_BIAS
// out      (batch, out_columns); columns start to start + rows - 1 are written
// grid     one workgroup for 4 * WORKGROUP / LANES rows of the weight
// format   quant/q4_0 stands for any file of quant/ with its two functions
// uses     quant/q4_0

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
    x_offset: u32,
    bias_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;
const LANES = 32u;
const BATCH = 1u;
const HAS_BIAS = false;

const ROWS = 4u;
const QUADS = 8u;
const STRIDE = LANES + 1u;
const TILE = max(BATCH * QUADS * STRIDE, BATCH * WORKGROUP);

var<workgroup> tile: array<vec4<f32>, TILE>;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// Columns column to column + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, column: u32) -> vec4<f32> {
    if (m >= params.batch || column >= params.columns) {
        return vec4<f32>();
    }
    let at = m * params.columns + column;
    if (column + 4u <= params.columns) {
        return vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    }
    var quad = vec4<f32>(load_x(at), 0.0, 0.0, 0.0);
    if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
    if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    return quad;
}

// The sum of weight * x over a unit whose first quad of x is tile[at].
fn dot_unit(w: array<vec4<f32>, 8>, scales: vec4<f32>, at: u32, x_sum: f32) -> f32 {
    var first = w[0] * tile[at];
    first += w[1] * tile[at + STRIDE];
    first += w[2] * tile[at + 2u * STRIDE];
    first += w[3] * tile[at + 3u * STRIDE];
    var last = w[4] * tile[at + 4u * STRIDE];
    last += w[5] * tile[at + 5u * STRIDE];
    last += w[6] * tile[at + 6u * STRIDE];
    last += w[7] * tile[at + 7u * STRIDE];
    return combine(scales, first, last, x_sum);
}

// The sum of x over a unit; what a format with a least value multiplies it with.
fn sum_unit(at: u32) -> f32 {
    let first = (tile[at] + tile[at + STRIDE]) + (tile[at + 2u * STRIDE] + tile[at + 3u * STRIDE]);
    let last = (tile[at + 4u * STRIDE] + tile[at + 5u * STRIDE])
        + (tile[at + 6u * STRIDE] + tile[at + 7u * STRIDE]);
    let sum = first + last;
    return (sum.x + sum.y) + (sum.z + sum.w);
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
    let last = params.rows - 1u;
    let row_0 = min(row, last) * params.units;
    let row_1 = min(row + 1u, last) * params.units;
    let row_2 = min(row + 2u, last) * params.units;
    let row_3 = min(row + 3u, last) * params.units;

    var sums: array<vec4<f32>, BATCH>;
    for (var first = 0u; first < params.units; first += LANES) {
        for (var i = thread; i < BATCH * QUADS * LANES; i += WORKGROUP) {
            let m = i / (QUADS * LANES);
            let quad = i % (QUADS * LANES);
            tile[(m * QUADS + quad % QUADS) * STRIDE + quad / QUADS] =
                quad_of_x(m, 4u * (first * QUADS + quad));
        }
        workgroupBarrier();
        let unit = first + lane;
        if (unit < params.units) {
            let w_0 = unpack(row_0 + unit);
            let w_1 = unpack(row_1 + unit);
            let w_2 = unpack(row_2 + unit);
            let w_3 = unpack(row_3 + unit);
            let scales_0 = unit_scales(row_0 + unit);
            let scales_1 = unit_scales(row_1 + unit);
            let scales_2 = unit_scales(row_2 + unit);
            let scales_3 = unit_scales(row_3 + unit);
            for (var m = 0u; m < BATCH; m++) {
                let at = m * QUADS * STRIDE + lane;
                let x_sum = sum_unit(at);
                sums[m] += vec4<f32>(
                    dot_unit(w_0, scales_0, at, x_sum),
                    dot_unit(w_1, scales_1, at, x_sum),
                    dot_unit(w_2, scales_2, at, x_sum),
                    dot_unit(w_3, scales_3, at, x_sum),
                );
            }
        }
        workgroupBarrier();
    }

    for (var m = 0u; m < BATCH; m++) {
        tile[m * WORKGROUP + thread] = sums[m];
    }
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            for (var m = 0u; m < BATCH; m++) {
                tile[m * WORKGROUP + thread] += tile[m * WORKGROUP + thread + width];
            }
        }
        workgroupBarrier();
    }
    if (lane < BATCH && lane < params.batch) {
        let sum = tile[lane * WORKGROUP + group * LANES];
        for (var r = 0u; r < ROWS; r++) {
            if (row + r < params.rows) {
                var value = sum[r];
                if (HAS_BIAS) {
                    value += load_bias(params.start + row + r);
                }
                store_out(lane * params.out_columns + params.start + row + r, value);
            }
        }
    }
}
