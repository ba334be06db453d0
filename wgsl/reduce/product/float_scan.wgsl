// out[r, c] = x[r, 0] * ... * x[r, c]     the running product of each row, of floats, for GPUs
//
// Factors are multiplied as wgsl/parts/product/factored.wgsl has them.
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
// uses   factored

// At most: lanes' totals lie from 1 to 2 and from 1/2 to 1 in turns, so that all together fit a float.
const WORKGROUP = 128u;
// Whether `fma` rounds once.
const FUSED = true;
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

// The slots of lanes are padded, so that lanes meet different banks; behind them lie the sums of parts, two
// times, so that a step of their scan reads those of the one before.
const SUMS = WORKGROUP + WORKGROUP / 8u;
var<workgroup> slots: array<Factored, SUMS + 2u * PARTS>;

fn slot(lane: u32) -> u32 { return lane + lane / 8u; }

fn ones() -> Factored { return Factored(vec4<f32>(1.0), vec4<f32>(), vec4<i32>()); }

// The product of the totals of so many parts of a row, known to every lane.
fn product_before(lane: u32, first: u32, count: u32) -> OneFactored {
    var own = OneFactored(1.0, 0.0, 0);
    for (var k = lane; k < count; k += WORKGROUP) {
        own = one_normal(one_times(own, one_of_product(totals[first + k]), FUSED));
    }
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        slots[lane] = Factored(vec4<f32>(own.size), vec4<f32>(own.rest), vec4<i32>(own.power));
        workgroupBarrier();
        let other = slots[(lane + half) % WORKGROUP];
        own = one_normal(one_times(own, factored_one(other, 0u), FUSED));
        workgroupBarrier();
    }
    return own;
}

// What the lanes before a lane have, and all.
struct Lanes {
    before: Factored,
    all: Factored,
}

fn scan_lanes(lane: u32, value: Factored) -> Lanes {
    workgroupBarrier();  // what an earlier call left may still be read
    slots[slot(lane)] = value;
    workgroupBarrier();
    var sum = ones();
    if (lane < PARTS) {
        sum = slots[slot(lane * CHUNK)];
        for (var k = 1u; k < CHUNK; k++) {
            let at = slot(lane * CHUNK + k);
            sum = factored_times(sum, slots[at], FUSED);
            slots[at] = sum;
        }
        slots[SUMS + lane] = sum;
    }
    workgroupBarrier();
    var side = SUMS;
    for (var reach = 1u; reach < PARTS; reach *= 2u) {
        if (lane < PARTS) {
            if (lane >= reach) { sum = factored_times(slots[side + lane - reach], sum, FUSED); }
            slots[2u * SUMS + PARTS - side + lane] = sum;
        }
        side = 2u * SUMS + PARTS - side;
        workgroupBarrier();
    }
    let part = lane / CHUNK;
    let all = factored_normal(slots[side + PARTS - 1u], 0);
    var before = ones();
    if (part > 0u) { before = slots[side + part - 1u]; }
    if (lane % CHUNK > 0u) { before = factored_times(before, slots[slot(lane - 1u)], FUSED); }
    return Lanes(before, all);
}

// Four neighbours; past the end the last one again, so that no load waits for a branch.
fn four_at(base: u32, column: u32, end: u32) -> vec4<f32> {
    let columns = column + vec4<u32>(0u, 1u, 2u, 3u);
    let at = base + min(columns, vec4<u32>(end - 1u));
    let four = vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
    return select(vec4<f32>(1.0), four, columns < vec4<u32>(end));
}

// Four running products.
fn running_four(a: Factored) -> Factored {
    let x = factored_one(a, 0u);
    let y = one_times(x, factored_one(a, 1u), FUSED);
    let z = one_times(y, factored_one(a, 2u), FUSED);
    let w = one_times(z, factored_one(a, 3u), FUSED);
    return Factored(vec4<f32>(x.size, y.size, z.size, w.size), vec4<f32>(x.rest, y.rest, z.rest, w.rest),
        vec4<i32>(x.power, y.power, z.power, w.power));
}

fn powers_of_two(n: vec4<i32>) -> vec4<f32> { return bitcast<vec4<f32>>(vec4<u32>(n + 127) << vec4<u32>(23u)); }

// Stores running products behind what comes before them.
fn put(base: u32, column: u32, end: u32, before: OneFactored, own: Factored) {
    let size = before.size * own.size;
    let off = rounded_off(vec4<f32>(before.size), own.size, size, FUSED);
    let rest = off + (before.size * own.rest + before.rest * own.size);
    var four = size + rest;
    // an infinity, a NaN and the sign of a zero remain
    if (((bitcast<u32>(size.w) >> 23u) & 255u) - 1u >= 254u) {
        four = select(four, size, factored_fields(size) - 1u >= vec4<u32>(254u));
    }
    let power = before.power + own.power;
    if (all(vec4<u32>(power + 126) <= vec4<u32>(240u))) {
        four *= powers_of_two(power);
    } else {
        let near = clamp(power, vec4<i32>(-240), vec4<i32>(240));
        let half = near >> vec4<u32>(1u);
        four = (four * powers_of_two(half)) * powers_of_two(near - half);
    }
    let at = base + column;
    if (column + 3u < end) {
        store_out(at, four.x);
        store_out(at + 1u, four.y);
        store_out(at + 2u, four.z);
        store_out(at + 3u, four.w);
        return;
    }
    if (column < end) { store_out(at, four.x); }
    if (column + 1u < end) { store_out(at + 1u, four.y); }
    if (column + 2u < end) { store_out(at + 2u, four.z); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let index = id.y * count.x + id.x;
    if (index >= params.rows * params.parts) {
        return;
    }
    // the last ones first: what is read last lies in a cache
    let group = params.rows * params.parts - 1u - index;
    let row = group / params.parts;
    let part = group - row * params.parts;
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    var running = OneFactored(1.0, 0.0, 0);
    if (part > 0u) {
        running = product_before(lane, row * params.parts, part);
    }
    for (var start = part * params.chunk; start < end; start += 16u * WORKGROUP) {
        let column = start + 4u * lane;
        let a_four = four_at(base, column, end);
        let b_four = four_at(base, column + 4u * WORKGROUP, end);
        let c_four = four_at(base, column + 8u * WORKGROUP, end);
        let d_four = four_at(base, column + 12u * WORKGROUP, end);
        let a = running_four(factors_of(a_four));
        let b = running_four(factors_of(b_four));
        let c = running_four(factors_of(c_four));
        let d = running_four(factors_of(d_four));
        let totals = Factored(vec4<f32>(a.size.w, b.size.w, c.size.w, d.size.w),
            vec4<f32>(a.rest.w, b.rest.w, c.rest.w, d.rest.w),
            vec4<i32>(a.power.w, b.power.w, c.power.w, d.power.w));
        let lanes = scan_lanes(lane, factored_normal(totals, -i32(lane & 1u)));
        let second = one_times(running, factored_one(lanes.all, 0u), FUSED);
        let third = one_times(second, factored_one(lanes.all, 1u), FUSED);
        let fourth = one_times(third, factored_one(lanes.all, 2u), FUSED);
        let rows = Factored(vec4<f32>(running.size, second.size, third.size, fourth.size),
            vec4<f32>(running.rest, second.rest, third.rest, fourth.rest),
            vec4<i32>(running.power, second.power, third.power, fourth.power));
        let before = factored_normal(factored_times(rows, lanes.before, FUSED), 0);
        put(base, column, end, factored_one(before, 0u), a);
        put(base, column + 4u * WORKGROUP, end, factored_one(before, 1u), b);
        put(base, column + 8u * WORKGROUP, end, factored_one(before, 2u), c);
        put(base, column + 12u * WORKGROUP, end, factored_one(before, 3u), d);
        running = one_normal(one_times(fourth, factored_one(lanes.all, 3u), FUSED));
    }
}
