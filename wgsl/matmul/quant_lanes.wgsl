// What matmul/quant_vector, quant_vectors and quant_pair share: a group of lanes multiplies four
// rows of a weight by at most BATCH rows of x
//
// multiply   a lane's shares of the products; with NORM x is multiplied by norm_weight, and the
//            squares of the lane's share of x are added up
// gather     brings the shares of all lanes together in workgroup memory
// total      one finished product
// norm_scale with NORM, the factor by which a row of x is normalized
//
// The lanes of a group take units of 32 columns in turn, so that neighbours read neighbouring
// 16-byte words, and use a unit's columns of x for all four rows. x comes through workgroup memory,
// stored by quads with one quad of padding, so that the lanes of a group meet no bank twice. What a
// step needs of the weight and of x is asked for while the step before computes. A normalized row
// is x * norm_weight times one number, by which the products are multiplied in the end.
//
// expects  const WORKGROUP, LANES, BATCH, NORM, PADDED: LANES from 8 to 64, at most four quads of x
//          a lane (8 * BATCH * LANES <= 4 * WORKGROUP), one row of x with NORM; PADDED where the
//          last unit of a row reaches past the columns. batch, columns, units and eps in Params.
//          load_x, load_norm_weight, load_units, and a file of quant/. all_squares, which becomes
//          workgroup_sum or subgroup_sum with NORM: where many rows of x fill the workgroup memory
//          there is no room for them

const ROWS = 4u;
const QUADS = 8u;
const STRIDE = LANES + 1u;
const ROW_OF_X = QUADS * STRIDE;
const QUADS_OF_STEP = BATCH * QUADS * LANES;
const TILE = max(BATCH * ROW_OF_X, BATCH * WORKGROUP);

var<workgroup> tile: array<vec4<f32>, TILE>;

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

struct Products {
    sums: Sums,
    squares: f32,
}

// The same unit of four rows of the weight.
struct Units {
    row_0: Unit,
    row_1: Unit,
    row_2: Unit,
    row_3: Unit,
}

// Four columns of four rows of the weight, by column.
struct Columns {
    column_0: vec4<f32>,
    column_1: vec4<f32>,
    column_2: vec4<f32>,
    column_3: vec4<f32>,
}

// The quads of a step that a lane brings into workgroup memory.
struct Share {
    quad_0: vec4<f32>,
    quad_1: vec4<f32>,
    quad_2: vec4<f32>,
    quad_3: vec4<f32>,
}

// Columns column to column + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, column: u32) -> vec4<f32> {
    if ((BATCH > 1u && m >= params.batch) || column >= params.columns) {
        return vec4<f32>();
    }
    let at = m * params.columns + column;
    if (!PADDED || column + 4u <= params.columns) {
        return vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    }
    var quad = vec4<f32>(load_x(at), 0.0, 0.0, 0.0);
    if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
    if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    return quad;
}

// Columns column to column + 3 of norm_weight; anything outside.
fn quad_of_norm(column: u32) -> vec4<f32> {
    let at = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.columns - 1u));
    return vec4<f32>(load_norm_weight(at.x), load_norm_weight(at.y), load_norm_weight(at.z),
        load_norm_weight(at.w));
}

// Quad i of the step that begins at unit `step`: of x, or of norm_weight.
fn step_quad(step: u32, i: u32, is_norm: bool) -> vec4<f32> {
    let column = 4u * (step * QUADS + i % (QUADS * LANES));
    if (is_norm) {
        return quad_of_norm(column);
    }
    if (i >= QUADS_OF_STEP) {
        return vec4<f32>();
    }
    return quad_of_x(i / (QUADS * LANES), column);
}

fn load_share(step: u32, thread: u32, is_norm: bool) -> Share {
    var share = Share();
    share.quad_0 = step_quad(step, thread, is_norm);
    if (QUADS_OF_STEP > WORKGROUP) {
        share.quad_1 = step_quad(step, thread + WORKGROUP, is_norm);
    }
    if (QUADS_OF_STEP > 2u * WORKGROUP) {
        share.quad_2 = step_quad(step, thread + 2u * WORKGROUP, is_norm);
        share.quad_3 = step_quad(step, thread + 3u * WORKGROUP, is_norm);
    }
    return share;
}

fn put_quad(i: u32, quad: vec4<f32>) {
    if (i < QUADS_OF_STEP) {
        let place = i % (QUADS * LANES);
        let m = i / (QUADS * LANES);
        tile[(m * QUADS + place % QUADS) * STRIDE + place / QUADS] = X_FACTORS * quad;
    }
}

fn put_share(thread: u32, x: Share, norm: Share) {
    put_quad(thread, x.quad_0 * norm.quad_0);
    if (QUADS_OF_STEP > WORKGROUP) {
        put_quad(thread + WORKGROUP, x.quad_1 * norm.quad_1);
    }
    if (QUADS_OF_STEP > 2u * WORKGROUP) {
        put_quad(thread + 2u * WORKGROUP, x.quad_2 * norm.quad_2);
        put_quad(thread + 3u * WORKGROUP, x.quad_3 * norm.quad_3);
    }
}

fn squares_of(x: Share) -> f32 {
    return (dot(x.quad_0, x.quad_0) + dot(x.quad_1, x.quad_1))
        + (dot(x.quad_2, x.quad_2) + dot(x.quad_3, x.quad_3));
}

fn add_quad(sum: vec4<f32>, w: Columns, x: vec4<f32>) -> vec4<f32> {
    let first = fma(w.column_1, vec4<f32>(x.y), fma(w.column_0, vec4<f32>(x.x), sum));
    return fma(w.column_3, vec4<f32>(x.w), fma(w.column_2, vec4<f32>(x.z), first));
}

// The products of the columns of a unit that are done, and the sums of their x: what a format with
// a least value adds it for.
struct Part {
    sums: Sums,
    x: Sums,
}

// part + weight * x over one quad of columns of the units.
fn add_columns(part: Part, units: Units, quad: u32, lane: u32) -> Part {
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
    var added = part;
    let x_0 = tile[at];
    added.sums.m_0 = add_quad(part.sums.m_0, w, x_0);
    added.x.m_0 += x_0;
    if (BATCH > 1u) {
        let x_1 = tile[at + ROW_OF_X];
        added.sums.m_1 = add_quad(part.sums.m_1, w, x_1);
        added.x.m_1 += x_1;
    }
    if (BATCH > 2u) {
        let x_2 = tile[at + 2u * ROW_OF_X];
        added.sums.m_2 = add_quad(part.sums.m_2, w, x_2);
        added.x.m_2 += x_2;
        let x_3 = tile[at + 3u * ROW_OF_X];
        added.sums.m_3 = add_quad(part.sums.m_3, w, x_3);
        added.x.m_3 += x_3;
    }
    if (BATCH > 4u) {
        let x_4 = tile[at + 4u * ROW_OF_X];
        added.sums.m_4 = add_quad(part.sums.m_4, w, x_4);
        added.x.m_4 += x_4;
        let x_5 = tile[at + 5u * ROW_OF_X];
        added.sums.m_5 = add_quad(part.sums.m_5, w, x_5);
        added.x.m_5 += x_5;
        let x_6 = tile[at + 6u * ROW_OF_X];
        added.sums.m_6 = add_quad(part.sums.m_6, w, x_6);
        added.x.m_6 += x_6;
        let x_7 = tile[at + 7u * ROW_OF_X];
        added.sums.m_7 = add_quad(part.sums.m_7, w, x_7);
        added.x.m_7 += x_7;
    }
    return added;
}

// sum + the scaled sums of a unit.
fn add_unit(
    sum: vec4<f32>, units: Units, place: u32, first: vec4<f32>, last: vec4<f32>, x: vec4<f32>,
) -> vec4<f32> {
    let x_sum = dot(x, 1.0 / X_FACTORS);
    return sum + vec4<f32>(
        combine(units.row_0, place, first.x, last.x, x_sum),
        combine(units.row_1, place, first.y, last.y, x_sum),
        combine(units.row_2, place, first.z, last.z, x_sum),
        combine(units.row_3, place, first.w, last.w, x_sum),
    );
}

// sums + the products of four units of the weight with their columns of x.
fn add_units(sums: Sums, units: Units, lane: u32) -> Sums {
    var first = add_columns(Part(), units, 0u, lane);
    first = add_columns(first, units, 1u, lane);
    first = add_columns(first, units, 2u, lane);
    first = add_columns(first, units, 3u, lane);
    var last = add_columns(Part(Sums(), first.x), units, 4u, lane);
    last = add_columns(last, units, 5u, lane);
    last = add_columns(last, units, 6u, lane);
    last = add_columns(last, units, 7u, lane);
    // Steps are multiples of 8 units.
    let place = lane & 7u;
    let a = first.sums;
    let b = last.sums;
    var added = sums;
    added.m_0 = add_unit(sums.m_0, units, place, a.m_0, b.m_0, last.x.m_0);
    if (BATCH > 1u) {
        added.m_1 = add_unit(sums.m_1, units, place, a.m_1, b.m_1, last.x.m_1);
    }
    if (BATCH > 2u) {
        added.m_2 = add_unit(sums.m_2, units, place, a.m_2, b.m_2, last.x.m_2);
        added.m_3 = add_unit(sums.m_3, units, place, a.m_3, b.m_3, last.x.m_3);
    }
    if (BATCH > 4u) {
        added.m_4 = add_unit(sums.m_4, units, place, a.m_4, b.m_4, last.x.m_4);
        added.m_5 = add_unit(sums.m_5, units, place, a.m_5, b.m_5, last.x.m_5);
        added.m_6 = add_unit(sums.m_6, units, place, a.m_6, b.m_6, last.x.m_6);
        added.m_7 = add_unit(sums.m_7, units, place, a.m_7, b.m_7, last.x.m_7);
    }
    return added;
}

// What a lane adds to the products of four rows, whose first units are given.
fn multiply(thread: u32, rows: vec4<u32>) -> Products {
    let lane = thread % LANES;
    let one = Share(vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0));
    let last_unit = params.units - 1u;
    var products = Products();
    var units = load_units(rows + min(lane, last_unit));
    var x = load_share(0u, thread, false);
    var norm = one;
    if (NORM) {
        norm = load_share(0u, thread, true);
    }
    for (var step = 0u; step < params.units; step += LANES) {
        put_share(thread, x, norm);
        if (NORM) {
            products.squares += squares_of(x);
        }
        workgroupBarrier();
        let now = units;
        units = load_units(rows + min(step + lane + LANES, last_unit));
        x = load_share(step + LANES, thread, false);
        if (NORM) {
            norm = load_share(step + LANES, thread, true);
        }
        if (step + lane < params.units) {
            products.sums = add_units(products.sums, now, lane);
        }
        workgroupBarrier();
    }
    return products;
}

// In two levels: two barriers, where a tree takes one per halving.
fn gather(thread: u32, sums: Sums) {
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
    if (thread % LANES < 4u) {
        for (var at = thread; at < BATCH * WORKGROUP; at += WORKGROUP) {
            var sum = tile[at];
            for (var k = 4u; k < LANES; k += 4u) {
                sum += tile[at + k];
            }
            tile[at] = sum;
        }
    }
    workgroupBarrier();
}

// Row m of x times row r of the four whose group begins at lane `first`.
fn total(m: u32, first: u32, r: u32) -> f32 {
    let at = m * WORKGROUP + first;
    return (tile[at][r] + tile[at + 1u][r]) + (tile[at + 2u][r] + tile[at + 3u][r]);
}

// 1 / sqrt(mean(x^2) + eps); 1 without NORM.
fn norm_scale(thread: u32, squares: f32) -> f32 {
    if (!NORM) {
        return 1.0;
    }
    return 1.0 / sqrt(all_squares(thread, squares) / f32(params.columns) + params.eps);
}
