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
    let at = m * params.columns + column;
    if (m < params.batch && column + 4u <= params.columns) {
        return vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    }
    var quad = vec4<f32>();
    if (m < params.batch) {
        if (column < params.columns) { quad.x = load_x(at); }
        if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
        if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    }
    return quad;
}

// One value for each of four rows of the weight, for each row of x; those past BATCH are unused.
// Named, not an array: an array indexed in a loop would live in memory.
struct Sums {
    m_0: vec4<f32>,
    m_1: vec4<f32>,
    m_2: vec4<f32>,
    m_3: vec4<f32>,
    m_4: vec4<f32>,
    m_5: vec4<f32>,
    m_6: vec4<f32>,
    m_7: vec4<f32>,
}

// The same unit of four rows of the weight.
struct Units {
    row_0: Unit,
    row_1: Unit,
    row_2: Unit,
    row_3: Unit,
}

fn load_units(row_0: u32, row_1: u32, row_2: u32, row_3: u32) -> Units {
    return Units(load_unit(row_0), load_unit(row_1), load_unit(row_2), load_unit(row_3));
}

// Four columns of four rows of the weight, by column.
struct Columns {
    column_0: vec4<f32>,
    column_1: vec4<f32>,
    column_2: vec4<f32>,
    column_3: vec4<f32>,
}

fn add_quad(sum: vec4<f32>, w: Columns, at: u32) -> vec4<f32> {
    let quad = tile[at];
    let first = fma(w.column_1, vec4<f32>(quad.y), fma(w.column_0, vec4<f32>(quad.x), sum));
    return fma(w.column_3, vec4<f32>(quad.w), fma(w.column_2, vec4<f32>(quad.z), first));
}

// sums + weight * x over one quad of columns of the units.
fn add_columns(sums: Sums, units: Units, quad: u32, lane: u32) -> Sums {
    let a = unpack_quad(units.row_0, quad);
    let b = unpack_quad(units.row_1, quad);
    let c = unpack_quad(units.row_2, quad);
    let d = unpack_quad(units.row_3, quad);
    let w = Columns(
        vec4<f32>(a.x, b.x, c.x, d.x),
        vec4<f32>(a.y, b.y, c.y, d.y),
        vec4<f32>(a.z, b.z, c.z, d.z),
        vec4<f32>(a.w, b.w, c.w, d.w),
    );
    let at = quad * STRIDE + lane;
    var added = sums;
    added.m_0 = add_quad(sums.m_0, w, at);
    if (BATCH > 1u) {
        added.m_1 = add_quad(sums.m_1, w, at + ROW_OF_X);
    }
    if (BATCH > 2u) {
        added.m_2 = add_quad(sums.m_2, w, at + 2u * ROW_OF_X);
        added.m_3 = add_quad(sums.m_3, w, at + 3u * ROW_OF_X);
    }
    if (BATCH > 4u) {
        added.m_4 = add_quad(sums.m_4, w, at + 4u * ROW_OF_X);
        added.m_5 = add_quad(sums.m_5, w, at + 5u * ROW_OF_X);
        added.m_6 = add_quad(sums.m_6, w, at + 6u * ROW_OF_X);
        added.m_7 = add_quad(sums.m_7, w, at + 7u * ROW_OF_X);
    }
    return added;
}

// The sum of x over the unit of a lane.
fn sum_of_x(at: u32) -> f32 {
    let first = (tile[at] + tile[at + STRIDE]) + (tile[at + 2u * STRIDE] + tile[at + 3u * STRIDE]);
    let last = (tile[at + 4u * STRIDE] + tile[at + 5u * STRIDE])
        + (tile[at + 6u * STRIDE] + tile[at + 7u * STRIDE]);
    return dot(first + last, 1.0 / X_FACTORS);
}

// sum + the scaled sums of a unit; x is read again where the format has a least value.
fn add_unit(sum: vec4<f32>, units: Units, first: vec4<f32>, last: vec4<f32>, at: u32) -> vec4<f32> {
    var x_sum = 0.0;
    if (HAS_LOW) {
        x_sum = sum_of_x(at);
    }
    return sum + vec4<f32>(
        combine(units.row_0, first.x, last.x, x_sum),
        combine(units.row_1, first.y, last.y, x_sum),
        combine(units.row_2, first.z, last.z, x_sum),
        combine(units.row_3, first.w, last.w, x_sum),
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

    var sums = Sums();
    // The weights of a step are asked for while the step before computes.
    let last_unit = params.units - 1u;
    var unit = min(lane, last_unit);
    var next = load_units(row_0 + unit, row_1 + unit, row_2 + unit, row_3 + unit);
    for (var step = 0u; step < params.units; step += LANES) {
        let units = next;
        for (var i = thread; i < BATCH * QUADS * LANES; i += WORKGROUP) {
            let m = i / (QUADS * LANES);
            let quad = i % (QUADS * LANES);
            tile[(m * QUADS + quad % QUADS) * STRIDE + quad / QUADS] =
                X_FACTORS * quad_of_x(m, 4u * (step * QUADS + quad));
        }
        workgroupBarrier();
        unit = min(step + lane + LANES, last_unit);
        next = load_units(row_0 + unit, row_1 + unit, row_2 + unit, row_3 + unit);
        if (step + lane < params.units) {
            var first = add_columns(Sums(), units, 0u, lane);
            first = add_columns(first, units, 1u, lane);
            first = add_columns(first, units, 2u, lane);
            first = add_columns(first, units, 3u, lane);
            var last = add_columns(Sums(), units, 4u, lane);
            last = add_columns(last, units, 5u, lane);
            last = add_columns(last, units, 6u, lane);
            last = add_columns(last, units, 7u, lane);
            sums.m_0 = add_unit(sums.m_0, units, first.m_0, last.m_0, lane);
            if (BATCH > 1u) {
                sums.m_1 = add_unit(sums.m_1, units, first.m_1, last.m_1, lane + ROW_OF_X);
            }
            if (BATCH > 2u) {
                sums.m_2 = add_unit(sums.m_2, units, first.m_2, last.m_2, lane + 2u * ROW_OF_X);
                sums.m_3 = add_unit(sums.m_3, units, first.m_3, last.m_3, lane + 3u * ROW_OF_X);
            }
            if (BATCH > 4u) {
                sums.m_4 = add_unit(sums.m_4, units, first.m_4, last.m_4, lane + 4u * ROW_OF_X);
                sums.m_5 = add_unit(sums.m_5, units, first.m_5, last.m_5, lane + 5u * ROW_OF_X);
                sums.m_6 = add_unit(sums.m_6, units, first.m_6, last.m_6, lane + 6u * ROW_OF_X);
                sums.m_7 = add_unit(sums.m_7, units, first.m_7, last.m_7, lane + 7u * ROW_OF_X);
            }
        }
        workgroupBarrier();
    }

    tile[thread] = sums.m_0;
    if (BATCH > 1u) {
        tile[WORKGROUP + thread] = sums.m_1;
    }
    if (BATCH > 2u) {
        tile[2u * WORKGROUP + thread] = sums.m_2;
        tile[3u * WORKGROUP + thread] = sums.m_3;
    }
    if (BATCH > 4u) {
        tile[4u * WORKGROUP + thread] = sums.m_4;
        tile[5u * WORKGROUP + thread] = sums.m_5;
        tile[6u * WORKGROUP + thread] = sums.m_6;
        tile[7u * WORKGROUP + thread] = sums.m_7;
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
