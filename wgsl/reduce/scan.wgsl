// out[row, c] = result(apply(entry(x[row, 0]), ..., entry(x[row, c])))     by default a running sum
//
// x      (rows, columns)         contiguous
// totals (rows, columns / chunk) of the chunks; unused when there is one chunk
// out    (rows, columns)
// grid   one workgroup per WORKGROUP / LANES rows, or per row and chunk; LANES lanes share a chunk. They
//        add up the totals before it, and walk it in tiles: a lane has four times four neighbours, and
//        what it hands to others is scanned four by four
// fuses  x -> out
// turns  (chunk // LANES // 16 + 1) * 64 + parts // LANES

alias X = f32;
alias T = f32;
const WORKGROUP = 256u;
const LANES = WORKGROUP;

struct Params {
    x_offset: u32,
    totals_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> totals: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<X>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn load_totals(i: u32) -> T { return totals[params.totals_offset + i]; }
fn store_out(i: u32, value: X) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn entry(value: X) -> T { return value; }
fn result(value: T) -> X { return value; }

struct Four {
    a: T,
    b: T,
    c: T,
    d: T,
}

fn nothing() -> Four { return Four(identity(), identity(), identity(), identity()); }

fn apply_four(a: Four, b: Four) -> Four {
    return Four(apply(a.a, b.a), apply(a.b, b.b), apply(a.c, b.c), apply(a.d, b.d));
}

// Up to 16 lanes of a row scan what CHUNK neighbours gave, then what these add up to.
const PARTS = min(16u, LANES);
const CHUNK = LANES / PARTS;

// Padded, so that the lanes that scan meet different banks.
var<workgroup> slots: array<Four, WORKGROUP + WORKGROUP / 8u>;
var<workgroup> sums: array<Four, WORKGROUP / CHUNK>;
var<workgroup> before_sums: array<Four, WORKGROUP / CHUNK>;

fn slot(lane: u32) -> u32 { return lane + lane / 8u; }

// Leaves what lanes have of their row up to each lane.
fn scan_lanes(lane: u32, value: Four) {
    workgroupBarrier();  // what an earlier call left may still be read
    slots[slot(lane)] = value;
    workgroupBarrier();
    if (lane < WORKGROUP / CHUNK) {
        var sum = slots[slot(lane * CHUNK)];
        for (var k = 1u; k < CHUNK; k++) {
            let at = slot(lane * CHUNK + k);
            sum = apply_four(sum, slots[at]);
            slots[at] = sum;
        }
        sums[lane] = sum;
    }
    workgroupBarrier();
    if (lane < WORKGROUP / CHUNK && lane % PARTS > 0u) {
        let first = lane - lane % PARTS;
        var sum = sums[first];
        for (var k = first + 1u; k < lane; k++) {
            sum = apply_four(sum, sums[k]);
        }
        before_sums[lane] = sum;
    }
    workgroupBarrier();
}

// All lanes of a row up to this one.
fn up_to(lane: u32) -> Four {
    let part = lane / CHUNK;
    let own = slots[slot(lane)];
    if (part % PARTS == 0u) {
        return own;
    }
    return apply_four(before_sums[part], own);
}

// A lane's four neighbours, each with those before it. Past the end the last one is loaded again, so
// that no load waits for a branch.
fn four_at(base: u32, column: u32, end: u32) -> Four {
    let at = base + column;
    let last = base + end - 1u;
    let a = entry(load_x(min(at, last)));
    let b = entry(load_x(min(at + 1u, last)));
    let c = entry(load_x(min(at + 2u, last)));
    let d = entry(load_x(min(at + 3u, last)));
    return Four(select(identity(), a, column < end), select(identity(), b, column + 1u < end),
        select(identity(), c, column + 2u < end), select(identity(), d, column + 3u < end));
}

fn running(four: Four) -> Four {
    let b = apply(four.a, four.b);
    let c = apply(b, four.c);
    return Four(four.a, b, c, apply(c, four.d));
}

// In one block where all four are there: a branch each takes twice as long.
fn put(base: u32, column: u32, end: u32, before: T, four: Four) {
    let at = base + column;
    if (column + 3u < end) {
        store_out(at, result(apply(before, four.a)));
        store_out(at + 1u, result(apply(before, four.b)));
        store_out(at + 2u, result(apply(before, four.c)));
        store_out(at + 3u, result(apply(before, four.d)));
        return;
    }
    if (column < end) { store_out(at, result(apply(before, four.a))); }
    if (column + 1u < end) { store_out(at + 1u, result(apply(before, four.b))); }
    if (column + 2u < end) { store_out(at + 2u, result(apply(before, four.c))); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let index = id.y * count.x + id.x;
    let groups = (params.rows * params.parts + WORKGROUP / LANES - 1u) / (WORKGROUP / LANES);
    if (index >= groups) {
        return;
    }
    // the last ones first: what is read or written last lies in a cache
    let first = (groups - 1u - index) * (WORKGROUP / LANES);
    let part = first % params.parts;  // 0 where several rows share a workgroup
    let group = first + lane / LANES;
    let row = min(group / params.parts, params.rows - 1u);
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    // a row that is another workgroup's is not stored
    let stored = select(0u, end, group < params.rows * params.parts);
    let place = lane % LANES;
    let highest = lane - place + LANES - 1u;
    var sum = identity();
    if (part > 0u) {
        // each lane those that follow each other: they are combined in their order
        let own = (part + LANES - 1u) / LANES;
        let begin = min(place * own, part);
        for (var before = begin; before < min(begin + own, part); before++) {
            sum = apply(sum, load_totals(row * params.parts + before));
        }
        scan_lanes(lane, Four(sum, identity(), identity(), identity()));
        sum = up_to(highest).a;
    }
    for (var start = part * params.chunk; start < end; start += 16u * LANES) {
        let column = start + 4u * place;
        let a_four = four_at(base, column, end);
        let b_four = four_at(base, column + 4u * LANES, end);
        let c_four = four_at(base, column + 8u * LANES, end);
        let d_four = four_at(base, column + 12u * LANES, end);
        let a = running(a_four);
        let b = running(b_four);
        let c = running(c_four);
        let d = running(d_four);
        scan_lanes(lane, Four(a.d, b.d, c.d, d.d));
        var near = nothing();
        if (place > 0u) {
            near = up_to(lane - 1u);
        }
        let all = up_to(highest);
        put(base, column, stored, apply(sum, near.a), a);
        sum = apply(sum, all.a);
        put(base, column + 4u * LANES, stored, apply(sum, near.b), b);
        sum = apply(sum, all.b);
        put(base, column + 8u * LANES, stored, apply(sum, near.c), c);
        sum = apply(sum, all.c);
        put(base, column + 12u * LANES, stored, apply(sum, near.d), d);
        sum = apply(sum, all.d);
    }
}
