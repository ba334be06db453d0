// out[r, c] = x[r, 0] * ... * x[r, c]     the running product of each row, of floats, for GPUs
//
// Factors are multiplied as wgsl/parts/product/product_pair.wgsl does. A lane that has others than
// normal numbers multiplies one by one, and tells the lanes behind it by a mark that there was a zero,
// an infinity or a NaN.
//
// x      (rows, columns)   contiguous
// carry  (rows, parts)     products up to the end of each part, as wgsl/parts/product/product.wgsl
//        has them; unused when there is one part
// out    (rows, columns)
// grid   one workgroup per row and part, which is `chunk` long; it walks the part in tiles of 16
//        elements a lane, which neighbouring lanes load and store side by side, and each lane
//        multiplies 16 that follow each other: they change places in workgroup memory
// fuses  x -> out
// turns  (chunk // WORKGROUP // 16 + 1) * 64
// uses   product, product_pair

// At most: lanes' totals lie from 1 to 2 and from 1/2 to 1 in turns, so that all together fit a float.
const WORKGROUP = 128u;
const EACH = 16u;
const APART = WORKGROUP + WORKGROUP / 32u;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> carry: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// Marks of a product: where it has one, its pair tells no more than the sign.
const ZERO = 0x1000000u;
const INFINITE = 0x2000000u;
const UNDEFINED = 0x4000000u;
const MARKS = 0x7000000u;

// One slot in 33 is left out, so that lanes meet different banks of the memory in either order.
var<workgroup> tile: array<u32, EACH * WORKGROUP + WORKGROUP / 2u>;
// Totals, two times, so that a step of the scan reads those of the one before; 24 bits of an
// exponent, and marks.
var<workgroup> highs: array<f32, 2u * WORKGROUP>;
var<workgroup> lows: array<f32, 2u * WORKGROUP>;
var<workgroup> exponents: array<u32, 2u * WORKGROUP>;

struct Marked {
    pair: Pair,
    marks: u32,
}

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

fn leave(slot: u32, a: Marked) {
    highs[slot] = a.pair.high;
    lows[slot] = a.pair.low;
    exponents[slot] = (bitcast<u32>(a.pair.exponent) & 0xffffffu) | a.marks;
}

fn taken(slot: u32) -> Marked {
    let word = exponents[slot];
    return Marked(Pair(highs[slot], lows[slot], bitcast<i32>(word << 8u) >> 8u), word & MARKS);
}

fn times(a: Marked, b: Marked, none: u32) -> Marked {
    return Marked(pair_times_pair(a.pair, b.pair, none), a.marks | b.marks);
}

fn one() -> Marked { return Marked(pair_one(), 0u); }

// The slot of a lane's first element: those of two lanes lie beside each other.
fn own_slot(lane: u32) -> u32 { return EACH * lane + lane / 2u; }

// The slot of element `lane` of the tile. The next one that the lane loads lies APART behind it.
fn slot_of(lane: u32) -> u32 { return lane + lane / 32u; }

fn tile_quad(at: u32) -> vec4<u32> {
    return vec4<u32>(tile[at], tile[at + 1u], tile[at + 2u], tile[at + 3u]);
}

fn place_quad(at: u32, value: vec4<f32>) {
    let bits = bitcast<vec4<u32>>(value);
    tile[at] = bits.x;
    tile[at + 1u] = bits.y;
    tile[at + 2u] = bits.z;
    tile[at + 3u] = bits.w;
}

fn loaded(base: u32, column: u32, end: u32) -> f32 {
    if (column < end) {
        return load_x(base + column);
    }
    return 1.0;
}

// Four elements WORKGROUP apart; past the end 1.
fn loaded_quad(base: u32, column: u32, end: u32) -> vec4<f32> {
    if (column + 3u * WORKGROUP < end) {
        let at = base + column;
        return vec4<f32>(load_x(at), load_x(at + WORKGROUP), load_x(at + 2u * WORKGROUP),
            load_x(at + 3u * WORKGROUP));
    }
    return vec4<f32>(
        loaded(base, column, end), loaded(base, column + WORKGROUP, end),
        loaded(base, column + 2u * WORKGROUP, end), loaded(base, column + 3u * WORKGROUP, end));
}

fn fetch_quad(slot: u32, value: vec4<f32>) {
    let bits = bitcast<vec4<u32>>(value);
    tile[slot] = bits.x;
    tile[slot + APART] = bits.y;
    tile[slot + 2u * APART] = bits.z;
    tile[slot + 3u * APART] = bits.w;
}

fn put(slot: u32, base: u32, column: u32, end: u32) {
    if (column < end) {
        store_out(base + column, bitcast<f32>(tile[slot]));
    }
}

fn put_quad(slot: u32, base: u32, column: u32, end: u32) {
    put(slot, base, column, end);
    put(slot + APART, base, column + WORKGROUP, end);
    put(slot + 2u * APART, base, column + 2u * WORKGROUP, end);
    put(slot + 3u * APART, base, column + 3u * WORKGROUP, end);
}

fn value_of(a: Pair, marks: u32) -> f32 {
    if (marks == 0u) { return pair_value(a); }
    return bitcast<f32>((bitcast<u32>(a.high) & PRODUCT_SIGN) | bits_of(marks));
}

// Writes four running products in the place of their factors; the last one goes on.
fn run_quad(at: u32, before: Pair, marks: u32, none: u32) -> Pair {
    let bits = tile_quad(at);
    let a = pair_times(before, bits.x, none);
    let b = pair_times(a, bits.y, none);
    let c = pair_times(b, bits.z, none);
    let d = pair_times(c, bits.w, none);
    place_quad(at,
        vec4<f32>(value_of(a, marks), value_of(b, marks), value_of(c, marks), value_of(d, marks)));
    return d;
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
    let own = own_slot(lane);
    let slot = slot_of(lane);
    var running = one();
    if (part > 0u) {
        running = marked(carry[group - 1u]);
    }
    for (var start = part * params.chunk; start < end; start += EACH * WORKGROUP) {
        let column = start + lane;
        let first = loaded_quad(base, column, end);
        let second = loaded_quad(base, column + 4u * WORKGROUP, end);
        let third = loaded_quad(base, column + 8u * WORKGROUP, end);
        let fourth = loaded_quad(base, column + 12u * WORKGROUP, end);
        fetch_quad(slot, first);
        fetch_quad(slot + 4u * APART, second);
        fetch_quad(slot + 8u * APART, third);
        fetch_quad(slot + 12u * APART, fourth);
        workgroupBarrier();
        let a = tile_quad(own);
        let b = tile_quad(own + 4u);
        let c = tile_quad(own + 8u);
        let d = tile_quad(own + 12u);
        let is_normal = quad_is_normal(a) && quad_is_normal(b) && quad_is_normal(c) && quad_is_normal(d);
        var total = one();
        if (is_normal) {
            total.pair = pair_times_quad(total.pair, a, none);
            total.pair = pair_times_quad(total.pair, b, none);
            total.pair = pair_times_quad(total.pair, c, none);
            total.pair = pair_times_quad(total.pair, d, none);
        } else {
            var product = PRODUCT_ONE;
            for (var at = own; at < own + EACH; at++) {
                product = product_times(product, product_of(bitcast<f32>(tile[at])));
            }
            total = marked(product);
        }
        total.pair = pair_normal(total.pair, -i32(lane & 1u));
        leave(lane, total);
        workgroupBarrier();
        var side = 0u;
        for (var reach = 1u; reach < WORKGROUP; reach *= 2u) {
            if (lane >= reach) {
                total = times(taken(side + lane - reach), total, none);
            }
            side = WORKGROUP - side;
            leave(side + lane, total);
            workgroupBarrier();
        }
        var before = running;
        if (lane > 0u) {
            before = times(running, taken(side + lane - 1u), none);
        }
        before.pair = pair_normal(before.pair, 0);
        if (is_normal) {
            var pair = before.pair;
            for (var at = own; at < own + EACH; at += 4u) {
                pair = run_quad(at, pair, before.marks, none);
            }
        } else {
            var product = unmarked(before);
            for (var at = own; at < own + EACH; at++) {
                product = product_times(product, product_of(bitcast<f32>(tile[at])));
                tile[at] = bitcast<u32>(product_value(product));
            }
        }
        running = times(running, taken(side + WORKGROUP - 1u), none);
        running.pair = pair_normal(running.pair, 0);
        running.pair.exponent = clamp(running.pair.exponent, -100000000, 100000000);
        workgroupBarrier();
        put_quad(slot, base, column, end);
        put_quad(slot + 4u * APART, base, column + 4u * WORKGROUP, end);
        put_quad(slot + 8u * APART, base, column + 8u * WORKGROUP, end);
        put_quad(slot + 12u * APART, base, column + 12u * WORKGROUP, end);
        workgroupBarrier();  // the next tile takes the slots
    }
}
