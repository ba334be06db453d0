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
const ROW_OF_X = QUADS * STRIDE;
const TILE = max(BATCH * ROW_OF_X, BATCH * WORKGROUP);

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

// Four rows of a unit, unpacked.
struct Rows {
    row_0: array<vec4<f32>, 8>,
    row_1: array<vec4<f32>, 8>,
    row_2: array<vec4<f32>, 8>,
    row_3: array<vec4<f32>, 8>,
    scales_0: vec4<f32>,
    scales_1: vec4<f32>,
    scales_2: vec4<f32>,
    scales_3: vec4<f32>,
}

// The sum of weight * x over a unit, without the scales: its first and its last 16 columns.
fn dot_first(w: array<vec4<f32>, 8>, x_0: vec4<f32>, x_1: vec4<f32>, x_2: vec4<f32>, x_3: vec4<f32>) -> vec4<f32> {
    return fma(w[3], x_3, fma(w[2], x_2, fma(w[1], x_1, w[0] * x_0)));
}

fn dot_last(w: array<vec4<f32>, 8>, x_4: vec4<f32>, x_5: vec4<f32>, x_6: vec4<f32>, x_7: vec4<f32>) -> vec4<f32> {
    return fma(w[7], x_7, fma(w[6], x_6, fma(w[5], x_5, w[4] * x_4)));
}

// The sums of weight * x over a unit of four rows; the first quad of x is tile[at].
fn dot_rows(w: Rows, at: u32) -> vec4<f32> {
    let x_0 = tile[at];
    let x_1 = tile[at + STRIDE];
    let x_2 = tile[at + 2u * STRIDE];
    let x_3 = tile[at + 3u * STRIDE];
    let x_4 = tile[at + 4u * STRIDE];
    let x_5 = tile[at + 5u * STRIDE];
    let x_6 = tile[at + 6u * STRIDE];
    let x_7 = tile[at + 7u * STRIDE];
    // What a format with a least value multiplies it with; the others ignore it.
    let x = ((x_0 + x_1) + (x_2 + x_3)) + ((x_4 + x_5) + (x_6 + x_7));
    let x_sum = (x.x + x.y) + (x.z + x.w);
    return vec4<f32>(
        combine(w.scales_0, dot_first(w.row_0, x_0, x_1, x_2, x_3), dot_last(w.row_0, x_4, x_5, x_6, x_7), x_sum),
        combine(w.scales_1, dot_first(w.row_1, x_0, x_1, x_2, x_3), dot_last(w.row_1, x_4, x_5, x_6, x_7), x_sum),
        combine(w.scales_2, dot_first(w.row_2, x_0, x_1, x_2, x_3), dot_last(w.row_2, x_4, x_5, x_6, x_7), x_sum),
        combine(w.scales_3, dot_first(w.row_3, x_0, x_1, x_2, x_3), dot_last(w.row_3, x_4, x_5, x_6, x_7), x_sum),
    );
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

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
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
            let w = Rows(
                unpack(row_0 + unit),
                unpack(row_1 + unit),
                unpack(row_2 + unit),
                unpack(row_3 + unit),
                unit_scales(row_0 + unit),
                unit_scales(row_1 + unit),
                unit_scales(row_2 + unit),
                unit_scales(row_3 + unit),
            );
            sum_0 += dot_rows(w, lane);
            if (BATCH > 1u) {
                sum_1 += dot_rows(w, lane + ROW_OF_X);
            }
            if (BATCH > 2u) {
                sum_2 += dot_rows(w, lane + 2u * ROW_OF_X);
                sum_3 += dot_rows(w, lane + 3u * ROW_OF_X);
            }
            if (BATCH > 4u) {
                sum_4 += dot_rows(w, lane + 4u * ROW_OF_X);
                sum_5 += dot_rows(w, lane + 5u * ROW_OF_X);
                sum_6 += dot_rows(w, lane + 6u * ROW_OF_X);
                sum_7 += dot_rows(w, lane + 7u * ROW_OF_X);
            }
        }
        workgroupBarrier();
    }

    tile[thread] = sum_0;
    if (BATCH > 1u) {
        tile[WORKGROUP + thread] = sum_1;
    }
    if (BATCH > 2u) {
        tile[2u * WORKGROUP + thread] = sum_2;
        tile[3u * WORKGROUP + thread] = sum_3;
    }
    if (BATCH > 4u) {
        tile[4u * WORKGROUP + thread] = sum_4;
        tile[5u * WORKGROUP + thread] = sum_5;
        tile[6u * WORKGROUP + thread] = sum_6;
        tile[7u * WORKGROUP + thread] = sum_7;
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
