// How matmul/quant/vector, quant_split, quant_vectors and quant_pair multiply: a group of lanes
// multiplies four rows of a weight by at most BATCH rows of x
//
// multiply  a lane's shares of the products; with NORM x is multiplied by norm_weight, and the
//           squares of the lane's share of x are added up
//
// The lanes of a group take units of 32 columns in turn, so that neighbours read neighbouring
// 16-byte words, and use a unit's columns of x for all four rows. x comes through workgroup memory,
// stored by quads with one quad of padding, so that the lanes of a group meet no bank twice. What a
// step needs of the weight and of x is asked for while the step before computes. A normalized row
// is x * norm_weight times one number, by which the products are multiplied in the end.
//
// turns  a LANES-th of its units
// uses     matmul/quant/shares
// expects  what matmul/quant/shares expects, with STEP equal to LANES: from 8 to 64; BATCH at most 4,
//          one row of x with NORM; PADDED where the last unit of a row reaches past the columns.
//          units in Params. load_units, and a file of quant/

const STRIDE = LANES + 1u;
const ROW_OF_X = QUADS * STRIDE;
const TILE = max(BATCH * ROW_OF_X, BATCH * WORKGROUP);

var<workgroup> tile: array<vec4<f32>, TILE>;

fn gathered(i: u32) -> vec4<f32> {
    return tile[i];
}

fn put_gathered(i: u32, sums: vec4<f32>) {
    tile[i] = sums;
}

// Four columns of four rows of the weight, by column.
struct Columns {
    column_0: vec4<f32>,
    column_1: vec4<f32>,
    column_2: vec4<f32>,
    column_3: vec4<f32>,
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
    return added;
}

// What a lane adds to the products of four rows, whose first units are given, over units `first` to
// `end` - 1, `first` a multiple of 8.
fn multiply(thread: u32, rows: vec4<u32>, first: u32, end: u32) -> Products {
    let lane = thread % LANES;
    let one = Share(vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0));
    let last_unit = end - 1u;
    var products = Products();
    var units = load_units(rows + min(first + lane, last_unit));
    var x = load_share(first, thread, false);
    var norm = one;
    if (NORM) {
        norm = load_share(first, thread, true);
    }
    for (var step = first; step < end; step += LANES) {
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
        if (step + lane < end) {
            products.sums = add_units(products.sums, now, lane);
        }
        workgroupBarrier();
    }
    return products;
}
