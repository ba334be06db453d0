// How matmul/quant/vector, quant_split, quant_vectors and quant_pair multiply where the device has
// integer dot products: as matmul/quant/lanes, for one row of x, whose numbers become integers of
// three bytes
//
// multiply  a lane's shares of the products; with NORM x is multiplied by norm_weight, and the
//           squares of the lane's share of x are added up
//
// For each unit of 32 columns x is unit_step * q, rounded to integers q of three signed bytes, where
// unit_step is the smallest power of two with which the largest magnitude of the unit fits. So x is
// off by at most 1.004 * 2^-23 of that magnitude, or by 2^-127 where that is more; numbers of few
// bits, such as integers, are exact. The bytes are multiplied with the quants of the weight, four at
// a time, and their sums are exact, too. The error is of the size that a sum in f32 has anyway.
//
// A step of x lies in workgroup memory split: vectors of the bytes 0, 1 or 2 of 16 columns, and of
// the sums of q over four columns. For a unit with infinities or NaN, or with a number beside them,
// that says nothing: its unit_step is zero, and its products are made of floats in the end.
//
// turns  QUADS and its units, each step of them
// uses     matmul/quant/shares
// expects  what matmul/quant/shares expects, for one row of x and no PADDED columns; STEP a multiple
//          of LANES, with one, two or four quads for every lane. units in Params. load_units, and a
//          file of quant/ with ZERO_POINT, HALF_SCALES, quad_bytes and scale_product

// Vectors of the first 16 columns of every unit, then of the last ones, with padding so that lanes
// that write both meet no bank twice.
const STRIDE = STEP + 4u;
const SPAN = 2u * STRIDE;
// What carries magnitudes over to the next power of two that would round to more than 127 * 65536 +
// 127 * 256 + 127, the largest that three signed bytes hold.
const CARRY = 0x10101u;
// The exponent of units without a step.
const NO_STEP = 255u;
// 128 in each of three bytes.
const LIFTED = 0x808080;
const BESIDE = WORKGROUP / QUADS;

// One length for all: an index is checked, and an address made, once for several.
var<workgroup> peaks: array<vec4<u32>, SPAN>;
var<workgroup> split: array<array<vec4<u32>, SPAN>, 4>;
var<workgroup> unit_steps: array<f32, SPAN>;

fn gathered(i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(split[i / SPAN][i % SPAN]);
}

fn put_gathered(i: u32, sums: vec4<f32>) {
    split[i / SPAN][i % SPAN] = bitcast<vec4<u32>>(sums);
}

// The place of quad `thread` of a step: the vector that holds it, as element thread % 4. What a lane
// brings lies BESIDE vectors apart.
fn place_of(thread: u32) -> u32 {
    return ((thread >> 2u) & 1u) * STRIDE + thread / QUADS;
}

fn largest(values: vec4<u32>) -> u32 {
    let pairs = max(values.xy, values.zw);
    return max(pairs.x, pairs.y);
}

// The largest magnitude of four, as bits.
fn peak_of(quad: vec4<f32>) -> u32 {
    return largest(bitcast<vec4<u32>>(quad) & vec4<u32>(0x7fffffffu));
}

// The exponent, as bits, of the largest magnitude of a unit, or the next one.
fn peak_exponent(peak: u32) -> u32 {
    return max((peak + CARRY) >> 23u, 23u);
}

fn put_peak(place: u32, element: u32, quad: vec4<f32>) {
    peaks[place][element] = peak_of(quad);
}

// A quad as integers, by the peaks of its unit.
fn put_quad(place: u32, element: u32, unit: u32, quad: vec4<f32>) {
    let exponent = peak_exponent(largest(max(peaks[unit], peaks[STRIDE + unit])));
    if (place == unit && element == 0u) {
        unit_steps[unit] = select(bitcast<f32>((exponent - 22u) << 23u), 0.0, exponent >= NO_STEP);
    }
    // From 2^23 on, floats are integers, which are their last bits: the addition rounds.
    let factor = bitcast<f32>((276u - exponent) << 23u);
    let floats = fma(abs(quad), vec4<f32>(factor), vec4<f32>(8388608.0));
    let signs = bitcast<vec4<i32>>(quad) >> vec4<u32>(31u);
    let magnitudes = bitcast<vec4<i32>>(floats) ^ vec4<i32>(0x4b000000) ^ signs;
    // Signed bytes are the unsigned ones of a number larger by 128 each, without that.
    let lifted = magnitudes - signs + vec4<i32>(LIFTED);
    let bytes = bitcast<vec4<u32>>(lifted ^ vec4<i32>(LIFTED));
    let even = vec2<u32>(0xff00ffu);
    let outer = (bytes.xz & even) | ((bytes.yw << vec2<u32>(8u)) & ~even);
    let inner = ((bytes.xz >> vec2<u32>(8u)) & vec2<u32>(0xffu)) | (bytes.yw & vec2<u32>(0xff00u));
    split[0][place][element] = (outer.x & 0xffffu) | (outer.y << 16u);
    split[1][place][element] = inner.x | (inner.y << 16u);
    split[2][place][element] = (outer.x >> 16u) | (outer.y & 0xffff0000u);
    let sum = (lifted.x + lifted.y) + (lifted.z + lifted.w) - 4 * LIFTED;
    split[3][place][element] = bitcast<u32>(sum);
}

// Split a step of x, for all lanes. The first barrier also waits for those that still read the step
// before.
fn put_share(thread: u32, x: Share) {
    let place = place_of(thread);
    let element = thread & 3u;
    let unit = thread / QUADS;
    put_peak(place, element, x.quad_0);
    if (QUADS_OF_STEP > WORKGROUP) {
        put_peak(place + BESIDE, element, x.quad_1);
    }
    if (QUADS_OF_STEP > 2u * WORKGROUP) {
        put_peak(place + 2u * BESIDE, element, x.quad_2);
        put_peak(place + 3u * BESIDE, element, x.quad_3);
    }
    workgroupBarrier();
    put_quad(place, element, unit, x.quad_0);
    if (QUADS_OF_STEP > WORKGROUP) {
        put_quad(place + BESIDE, element, unit + BESIDE, x.quad_1);
    }
    if (QUADS_OF_STEP > 2u * WORKGROUP) {
        put_quad(place + 2u * BESIDE, element, unit + 2u * BESIDE, x.quad_2);
        put_quad(place + 3u * BESIDE, element, unit + 3u * BESIDE, x.quad_3);
    }
    workgroupBarrier();
}

fn normalized(x: Share, norm: Share) -> Share {
    return Share(x.quad_0 * norm.quad_0, x.quad_1 * norm.quad_1, x.quad_2 * norm.quad_2,
        x.quad_3 * norm.quad_3);
}

// A unit of x: bytes 0, 1 and 2 of its first and of its last 16 columns; the sums of its integers
// over those, or over all of them in place of the first with one scale for the unit; the sum of x.
struct Split {
    first_0: vec4<u32>,
    first_1: vec4<u32>,
    first_2: vec4<u32>,
    last_0: vec4<u32>,
    last_1: vec4<u32>,
    last_2: vec4<u32>,
    sums: vec2<i32>,
    sum: f32,
    unit_step: f32,
}

fn load_split(unit: u32) -> Split {
    let last = STRIDE + unit;
    let sums_first = bitcast<vec4<i32>>(split[3][unit]);
    let sums_last = bitcast<vec4<i32>>(split[3][last]);
    let sums = sums_first + sums_last;
    let sum = (sums.x + sums.y) + (sums.z + sums.w);
    let sum_last = (sums_last.x + sums_last.y) + (sums_last.z + sums_last.w);
    let unit_step = unit_steps[unit];
    return Split(
        split[0][unit],
        split[1][unit],
        split[2][unit],
        split[0][last],
        split[1][last],
        split[2][last],
        select(vec2<i32>(sum, 0), vec2<i32>(sum - sum_last, sum_last), HALF_SCALES),
        unit_step * f32(sum),
        unit_step,
    );
}

// What sums of bytes begin with, so that the zero point is taken off, by the sum of the integers.
fn begin(sum: i32) -> vec3<i32> {
    return vec3<i32>(sum & 0xffff, 0, sum >> 16u) * -ZERO_POINT;
}

fn add_dots(sums: vec3<i32>, bytes: u32, x_0: u32, x_1: u32, x_2: u32) -> vec3<i32> {
    return sums + vec3<i32>(
        dot4I8Packed(bytes, x_0), dot4I8Packed(bytes, x_1), dot4I8Packed(bytes, x_2),
    );
}

// Products of a unit of four rows with one of x, before their scales: in `first` those of the whole
// unit, and nothing in `last`; with HALF_SCALES those of its first and of its last 16 columns.
struct Halves {
    first: vec4<f32>,
    last: vec4<f32>,
}

// The number that the sums of bytes 0, 1 and 2 stand for.
fn joined(sums: vec3<i32>, unit_step: f32) -> f32 {
    // The lower part fits a float's 24 bits, but for quants of 5 bits, or of 6 and half a unit, where
    // it may lose one.
    let low = f32(sums.x + (sums.y << 8u));
    return fma(f32(sums.z), 65536.0 * unit_step, low * unit_step);
}

// The product of a unit of the weight with a unit of x, by Halves.
fn dots(w: Unit, x: Split) -> vec2<f32> {
    var sums = add_dots(begin(x.sums.x), quad_bytes(w, 0u), x.first_0.x, x.first_1.x, x.first_2.x);
    sums = add_dots(sums, quad_bytes(w, 1u), x.first_0.y, x.first_1.y, x.first_2.y);
    sums = add_dots(sums, quad_bytes(w, 2u), x.first_0.z, x.first_1.z, x.first_2.z);
    sums = add_dots(sums, quad_bytes(w, 3u), x.first_0.w, x.first_1.w, x.first_2.w);
    var first = 0.0;
    if (HALF_SCALES) {
        first = joined(sums, x.unit_step);
        sums = begin(x.sums.y);
    }
    sums = add_dots(sums, quad_bytes(w, 4u), x.last_0.x, x.last_1.x, x.last_2.x);
    sums = add_dots(sums, quad_bytes(w, 5u), x.last_0.y, x.last_1.y, x.last_2.y);
    sums = add_dots(sums, quad_bytes(w, 6u), x.last_0.z, x.last_1.z, x.last_2.z);
    sums = add_dots(sums, quad_bytes(w, 7u), x.last_0.w, x.last_1.w, x.last_2.w);
    let last = joined(sums, x.unit_step);
    return select(vec2<f32>(last, 0.0), vec2<f32>(first, last), HALF_SCALES);
}

// sums + the scaled products of four units, `place` in their superblocks, given the sum of x.
fn add_scaled(
    sums: vec4<f32>, units: Units, place: u32, products: Halves, x_sum: f32,
) -> vec4<f32> {
    let first = products.first;
    let last = products.last;
    return sums + vec4<f32>(
        scale_product(units.row_0, place, vec2<f32>(first.x, last.x), x_sum),
        scale_product(units.row_1, place, vec2<f32>(first.y, last.y), x_sum),
        scale_product(units.row_2, place, vec2<f32>(first.z, last.z), x_sum),
        scale_product(units.row_3, place, vec2<f32>(first.w, last.w), x_sum),
    );
}

fn add_dots_of(sums: vec4<f32>, units: Units, place: u32, x: Split) -> vec4<f32> {
    let a = dots(units.row_0, x);
    let b = dots(units.row_1, x);
    let c = dots(units.row_2, x);
    let d = dots(units.row_3, x);
    let products = Halves(vec4<f32>(a.x, b.x, c.x, d.x), vec4<f32>(a.y, b.y, c.y, d.y));
    return add_scaled(sums, units, place, products, x.sum);
}

// A quad of x as it is multiplied.
fn plain_x(unit: u32, quad: u32) -> vec4<f32> {
    let column = 4u * (QUADS * unit + quad);
    if (NORM) {
        return quad_of_x(0u, column) * quad_of_norm(column);
    }
    return quad_of_x(0u, column);
}

// Whether a unit of x has no step.
fn is_stepless(unit: u32) -> bool {
    var peak = 0u;
    for (var quad = 0u; quad < QUADS; quad++) {
        peak = max(peak, peak_of(plain_x(unit, quad)));
    }
    return peak_exponent(peak) >= NO_STEP;
}

// What a unit adds to four products without integers: the products before their scales, and x.
struct Part {
    products: vec4<f32>,
    x: vec4<f32>,
}

fn plain_quad(part: Part, units: Units, quad: u32, unit: u32) -> Part {
    let x = plain_x(unit, quad);
    let zero = vec4<f32>(f32(ZERO_POINT));
    return Part(
        part.products + vec4<f32>(
            dot(spread(quad_bytes(units.row_0, quad)) - zero, x),
            dot(spread(quad_bytes(units.row_1, quad)) - zero, x),
            dot(spread(quad_bytes(units.row_2, quad)) - zero, x),
            dot(spread(quad_bytes(units.row_3, quad)) - zero, x),
        ),
        part.x + x,
    );
}

// sums + the products of a lane's units of four rows with the units of x that have no step. Not part
// of the loop over all units, which would need more registers.
fn add_stepless(sums: vec4<f32>, rows: vec4<u32>, first: u32, end: u32) -> vec4<f32> {
    var added = sums;
    for (var unit = first; unit < end; unit += LANES) {
        if (!is_stepless(unit)) {
            continue;
        }
        let units = load_units(rows + unit);
        var part = plain_quad(Part(), units, 0u, unit);
        part = plain_quad(part, units, 1u, unit);
        part = plain_quad(part, units, 2u, unit);
        part = plain_quad(part, units, 3u, unit);
        var products = Halves();
        if (HALF_SCALES) {
            products.first = part.products;
            part.products = vec4<f32>();
        }
        part = plain_quad(part, units, 4u, unit);
        part = plain_quad(part, units, 5u, unit);
        part = plain_quad(part, units, 6u, unit);
        part = plain_quad(part, units, 7u, unit);
        if (HALF_SCALES) {
            products.last = part.products;
        } else {
            products.first = part.products;
        }
        let x_sum = (part.x.x + part.x.y) + (part.x.z + part.x.w);
        added = add_scaled(added, units, unit & 7u, products, x_sum);
    }
    return added;
}

// What a lane adds to the products of four rows, whose first units are given, over units `first` to
// `end` - 1, `first` a multiple of 8.
fn multiply(thread: u32, rows: vec4<u32>, first: u32, end: u32) -> Products {
    let lane = thread % LANES;
    let last_unit = end - 1u;
    var products = Products();
    var units = load_units(rows + min(first + lane, last_unit));
    var x = load_share(first, thread, false);
    var norm = Share();
    if (NORM) {
        norm = load_share(first, thread, true);
    }
    var is_whole = true;
    for (var step = first; step < end; step += STEP) {
        if (NORM) {
            products.squares += squares_of(x);
            x = normalized(x, norm);
        }
        put_share(thread, x);
        x = load_share(step + STEP, thread, false);
        if (NORM) {
            norm = load_share(step + STEP, thread, true);
        }
        let step_end = min(step + STEP, end);
        for (var unit = step + lane; unit < step_end; unit += LANES) {
            let now = units;
            units = load_units(rows + min(unit + LANES, last_unit));
            let split_x = load_split(unit - step);
            is_whole = is_whole && split_x.unit_step != 0.0;
            // Steps are multiples of 8 units.
            products.sums.m_0 = add_dots_of(products.sums.m_0, now, lane & 7u, split_x);
        }
    }
    if (!is_whole) {
        products.sums.m_0 = add_stepless(products.sums.m_0, rows, first + lane, end);
    }
    // The step becomes the place of the sums.
    workgroupBarrier();
    return products;
}
