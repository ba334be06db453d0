// out[r, c] = x[r, 0] * ... * x[r, c]     the running product of each row, of floats, for GPUs
//
// Factors are multiplied in pairs of floats as wgsl/parts/product/product_pair.wgsl has them. Four neighbours
// are multiplied as they are where none is far from 1: what leaves the range of floats is the exponent of
// all before them. A lane that has others multiplies one by one, and tells the lanes behind it by a mark that
// there was a zero, an infinity or a NaN.
//
// x      (rows, columns)   contiguous
// totals (rows, parts)     products of the parts, as wgsl/parts/product/product.wgsl has them; unused
//        when there is one part
// out    (rows, columns)
// grid   one workgroup per row and part, which is `chunk` long; it multiplies the totals before its part,
//        and walks the part in tiles: a lane has four times four neighbours, and what it hands to others
//        is scanned four by four
// fuses  x -> out
// turns  (chunk // WORKGROUP // 16 + 1) * 64 + parts // WORKGROUP
// uses   product, product_pair

// At most: lanes' totals lie from 1 to 2 and from 1/2 to 1 in turns, so that all together fit a float.
const WORKGROUP = 128u;
// Up to 16 lanes scan what so many neighbours gave.
const CHUNK = max(WORKGROUP / 16u, 1u);
const PARTS = WORKGROUP / CHUNK;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> totals: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// Marks of a product: where it has one, its pair tells no more than the sign.
const ZERO = 0x1000000u;
const INFINITE = 0x2000000u;
const UNDEFINED = 0x4000000u;
const MARKS = 0x7000000u;

struct Marked {
    pair: Pair,
    marks: u32,
}

// Four of them.
struct Four {
    high: vec4<f32>,
    low: vec4<f32>,
    exponent: vec4<i32>,
    marks: vec4<u32>,
}

// Exponents of a tile have 24 bits; a word has marks, too. The slots of lanes are padded, so that lanes
// meet different banks; behind them lie the sums of parts, two times, so that a step of their scan reads
// those of the one before.
const SUMS = WORKGROUP + WORKGROUP / 8u;
var<workgroup> highs: array<vec4<f32>, SUMS + 2u * PARTS>;
var<workgroup> lows: array<vec4<f32>, SUMS + 2u * PARTS>;
var<workgroup> words: array<vec4<u32>, SUMS + 2u * PARTS>;

fn marked(a: vec2<u32>) -> Marked {
    var marks = select(0u, ZERO, a.x == 0u);
    marks = select(marks, INFINITE, (a.y & PRODUCT_INFINITE) != 0u);
    marks = select(marks, UNDEFINED, (a.y & PRODUCT_NAN) != 0u);
    if (marks != 0u) {
        return Marked(pair_of_product(vec2<u32>(0x80000000u, (a.y & PRODUCT_SIGN) | u32(PRODUCT_BIAS))), marks);
    }
    return Marked(pair_of_product(a), 0u);
}

// The product of what the marks say.
fn unmarked(a: Marked) -> vec2<u32> {
    let sign = bitcast<u32>(a.pair.high) & PRODUCT_SIGN;
    if (is_undefined(a.marks)) { return vec2<u32>(0x80000000u, PRODUCT_NAN); }
    if ((a.marks & INFINITE) != 0u) { return vec2<u32>(0x80000000u, sign | PRODUCT_INFINITE); }
    if (a.marks != 0u) { return vec2<u32>(0u, sign | u32(PRODUCT_BIAS)); }
    return pair_product(a.pair);
}

fn is_undefined(marks: u32) -> bool { return marks >= (ZERO | INFINITE); }

// The bits of a float with marks, but for its sign.
fn bits_of(marks: u32) -> u32 {
    return select(select(0u, 0x7f800000u, (marks & INFINITE) != 0u), 0x7fc00000u, is_undefined(marks));
}

fn ones() -> Four { return Four(vec4<f32>(1.0), vec4<f32>(), vec4<i32>(), vec4<u32>()); }

fn gathered(a: Marked, b: Marked, c: Marked, d: Marked) -> Four {
    return Four(vec4<f32>(a.pair.high, b.pair.high, c.pair.high, d.pair.high),
        vec4<f32>(a.pair.low, b.pair.low, c.pair.low, d.pair.low),
        vec4<i32>(a.pair.exponent, b.pair.exponent, c.pair.exponent, d.pair.exponent),
        vec4<u32>(a.marks, b.marks, c.marks, d.marks));
}

fn one_of(a: Four, k: u32) -> Marked {
    return Marked(Pair(a.high[k], a.low[k], a.exponent[k]), a.marks[k]);
}

fn times(a: Marked, b: Marked, none: u32) -> Marked {
    return Marked(pair_times_pair(a.pair, b.pair, none), a.marks | b.marks);
}

// As pair_times_pair.
fn times_four(a: Four, b: Four, none: u32) -> Four {
    let main = a.high * b.high;
    let rest = a.high * b.low + a.low * (b.high + b.low);
    let high = bitcast<vec4<f32>>(bitcast<vec4<u32>>(main + rest) & vec4<u32>(0xfffff000u));
    let low = bitcast<vec4<f32>>(bitcast<vec4<u32>>(main - high) ^ vec4<u32>(none)) + rest;
    return Four(high, low, a.exponent + b.exponent, a.marks | b.marks);
}

// As pair_normal.
fn normal_four(a: Four, places: i32) -> Four {
    let power = vec4<i32>((bitcast<vec4<u32>>(a.high) >> vec4<u32>(23u)) & vec4<u32>(255u)) - 127 - places;
    let factor = bitcast<vec4<f32>>(vec4<u32>(127 - power) << vec4<u32>(23u));
    return Four(a.high * factor, a.low * factor, a.exponent + power, a.marks);
}

fn slot(lane: u32) -> u32 { return lane + lane / 8u; }

fn leave(at: u32, a: Four) {
    highs[at] = a.high;
    lows[at] = a.low;
    words[at] = (bitcast<vec4<u32>>(a.exponent) & vec4<u32>(0xffffffu)) | a.marks;
}

fn taken(at: u32) -> Four {
    let word = words[at];
    return Four(highs[at], lows[at], bitcast<vec4<i32>>(word << vec4<u32>(8u)) >> vec4<u32>(8u),
        word & vec4<u32>(MARKS));
}

fn normal_times(a: Marked, b: Marked, none: u32) -> Marked {
    var both = times(a, b, none);
    both.pair = pair_normal(both.pair, 0);
    both.pair.exponent = clamp(both.pair.exponent, -100000000, 100000000);
    return both;
}

// The product of the totals of so many parts of a row.
fn product_before(lane: u32, first: u32, count: u32, none: u32) -> Marked {
    var own = Marked(pair_one(), 0u);
    for (var k = lane; k < count; k += WORKGROUP) {
        own = normal_times(own, marked(totals[first + k]), none);
    }
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        highs[lane].x = own.pair.high;
        lows[lane].x = own.pair.low;
        words[lane] = vec4<u32>(bitcast<u32>(own.pair.exponent), own.marks, 0u, 0u);
        workgroupBarrier();
        let other = words[(lane + half) % WORKGROUP];
        let pair = Pair(highs[(lane + half) % WORKGROUP].x, lows[(lane + half) % WORKGROUP].x,
            bitcast<i32>(other.x));
        own = normal_times(own, Marked(pair, other.y), none);
        workgroupBarrier();
    }
    return own;
}

// What the lanes before a lane have, and all.
struct Lanes {
    before: Four,
    all: Four,
}

fn scan_lanes(lane: u32, value: Four, none: u32) -> Lanes {
    workgroupBarrier();  // what an earlier call left may still be read
    leave(slot(lane), value);
    workgroupBarrier();
    var sum = ones();
    if (lane < PARTS) {
        sum = taken(slot(lane * CHUNK));
        for (var k = 1u; k < CHUNK; k++) {
            let at = slot(lane * CHUNK + k);
            sum = times_four(sum, taken(at), none);
            leave(at, sum);
        }
        leave(SUMS + lane, sum);
    }
    workgroupBarrier();
    var side = SUMS;
    for (var reach = 1u; reach < PARTS; reach *= 2u) {
        if (lane < PARTS) {
            if (lane >= reach) { sum = times_four(taken(side + lane - reach), sum, none); }
            leave(2u * SUMS + PARTS - side + lane, sum);
        }
        side = 2u * SUMS + PARTS - side;
        workgroupBarrier();
    }
    let part = lane / CHUNK;
    let all = normal_four(taken(side + PARTS - 1u), 0);
    var before = ones();
    if (part > 0u) { before = taken(side + part - 1u); }
    if (lane % CHUNK > 0u) { before = times_four(before, taken(slot(lane - 1u)), none); }
    return Lanes(before, all);
}

// Four neighbours; past the end 1.
fn four_at(base: u32, column: u32, end: u32) -> vec4<u32> {
    let at = base + column;
    var four = vec4<f32>(1.0);
    if (column + 3u < end) {
        four = vec4<f32>(load_x(at), load_x(at + 1u), load_x(at + 2u), load_x(at + 3u));
    } else {
        for (var k = 0u; column + k < end; k++) { four[k] = load_x(at + k); }
    }
    return bitcast<vec4<u32>>(four);
}

// 2^n of a normal number.
fn power_of_two(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }

// Four running products.
fn put(base: u32, column: u32, end: u32, before: Marked, own: Products) {
    // in four steps: the power of two may lie outside the range of floats where its product does not
    let power = clamp(before.pair.exponent, -252, 252);
    let first = power_of_two(clamp(before.pair.exponent - power, -60, 60));
    let second = power_of_two(power >> 1u);
    let third = power_of_two(power - (power >> 1u));
    let high = first * before.pair.high;
    let low = first * before.pair.low;
    var four = high * own.high + (high * own.low + low * (own.high + own.low));
    four = (four * second) * third;
    if (before.marks != 0u) {
        let signs = bitcast<vec4<u32>>(own.high) ^ vec4<u32>(bitcast<u32>(high));
        four = bitcast<vec4<f32>>((signs & vec4<u32>(PRODUCT_SIGN)) | vec4<u32>(bits_of(before.marks)));
    }
    let at = base + column;
    if (column + 3u < end) {
        store_out(at, four.x);
        store_out(at + 1u, four.y);
        store_out(at + 2u, four.z);
        store_out(at + 3u, four.w);
    } else {
        for (var k = 0u; column + k < end; k++) { store_out(at + k, four[k]); }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.parts) {
        return;
    }
    let none = params.columns >> 31u;  // no row has 2^31 columns
    let row = group / params.parts;
    let part = group % params.parts;
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    var running = Marked(pair_one(), 0u);
    if (part > 0u) {
        running = product_before(lane, row * params.parts, part, none);
    }
    for (var start = part * params.chunk; start < end; start += 16u * WORKGROUP) {
        let column = start + 4u * lane;
        let a = four_at(base, column, end);
        let b = four_at(base, column + 4u * WORKGROUP, end);
        let c = four_at(base, column + 8u * WORKGROUP, end);
        let d = four_at(base, column + 12u * WORKGROUP, end);
        let is_near = quad_is_near(a) && quad_is_near(b) && quad_is_near(c) && quad_is_near(d);
        let a_own = quad_products(a, none);
        let b_own = quad_products(b, none);
        let c_own = quad_products(c, none);
        let d_own = quad_products(d, none);
        var totals = ones();
        if (is_near) {
            totals.high = vec4<f32>(a_own.high.w, b_own.high.w, c_own.high.w, d_own.high.w);
            totals.low = vec4<f32>(a_own.low.w, b_own.low.w, c_own.low.w, d_own.low.w);
        } else {
            var quads = array<vec4<u32>, 4>(a, b, c, d);
            for (var k = 0u; k < 4u; k++) {
                var product = PRODUCT_ONE;
                for (var e = 0u; e < 4u; e++) {
                    product = product_times(product, product_of(bitcast<f32>(quads[k][e])));
                }
                let total = marked(product);
                totals.high[k] = total.pair.high;
                totals.low[k] = total.pair.low;
                totals.exponent[k] = total.pair.exponent;
                totals.marks[k] = total.marks;
            }
        }
        let lanes = scan_lanes(lane, normal_four(totals, -i32(lane & 1u)), none);
        let second = times(running, one_of(lanes.all, 0u), none);
        let third = times(second, one_of(lanes.all, 1u), none);
        let fourth = times(third, one_of(lanes.all, 2u), none);
        let before = normal_four(times_four(gathered(running, second, third, fourth), lanes.before, none), 0);
        if (is_near) {
            put(base, column, end, one_of(before, 0u), a_own);
            put(base, column + 4u * WORKGROUP, end, one_of(before, 1u), b_own);
            put(base, column + 8u * WORKGROUP, end, one_of(before, 2u), c_own);
            put(base, column + 12u * WORKGROUP, end, one_of(before, 3u), d_own);
        } else {
            var quads = array<vec4<u32>, 4>(a, b, c, d);
            for (var k = 0u; k < 4u; k++) {
                let first = column + 4u * WORKGROUP * k;
                var product = unmarked(one_of(before, k));
                for (var e = 0u; e < 4u && first + e < end; e++) {
                    product = product_times(product, product_of(bitcast<f32>(quads[k][e])));
                    store_out(base + first + e, product_value(product));
                }
            }
        }
        running = normal_times(fourth, one_of(lanes.all, 3u), none);
    }
}
