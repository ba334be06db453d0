// out[row, c] = apply(x[row, 0], ..., x[row, c])     by default a running sum
//
// x      (rows, columns)         contiguous
// totals (rows, columns / chunk) of the chunks; unused when there is one chunk
// out    (rows, columns)
// grid   one workgroup per row and chunk; it adds up the totals before its chunk, and walks the chunk
//        in tiles of four elements a lane, which neighbouring lanes load and store side by side, and
//        each lane scans four that follow each other: they change places in workgroup memory
// fuses  x -> out
// turns  (chunk // WORKGROUP // 4 + 1) * 64 + parts // WORKGROUP
// uses   workgroup_scan

alias X = f32;
alias T = f32;
const WORKGROUP = 256u;

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

// One slot in 33 is left out, so that lanes meet different banks of the memory in either order.
var<workgroup> tile: array<T, 4u * WORKGROUP + WORKGROUP / 8u>;

fn tile_at(k: u32) -> T { return tile[k + k / 32u]; }
fn place(k: u32, value: T) { tile[k + k / 32u] = value; }

fn fetch(k: u32, base: u32, column: u32, end: u32) {
    var value = identity();
    if (column < end) {
        value = load_x(base + column);
    }
    place(k, value);
}

fn put(k: u32, base: u32, column: u32, end: u32) {
    if (column < end) {
        store_out(base + column, tile_at(k));
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.parts) {
        return;
    }
    let row = group / params.parts;
    let part = group % params.parts;
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    var running = identity();
    if (part > 0u) {
        // each lane those that follow each other: they are combined in their order
        let own = (part + WORKGROUP - 1u) / WORKGROUP;
        let first = min(lane * own, part);
        for (var before = first; before < min(first + own, part); before++) {
            running = apply(running, load_totals(row * params.parts + before));
        }
        workgroup_scan(lane, running);
        running = workgroup_scanned(WORKGROUP - 1u);
    }
    for (var start = part * params.chunk; start < end; start += 4u * WORKGROUP) {
        let column = start + lane;
        fetch(lane, base, column, end);
        fetch(lane + WORKGROUP, base, column + WORKGROUP, end);
        fetch(lane + 2u * WORKGROUP, base, column + 2u * WORKGROUP, end);
        fetch(lane + 3u * WORKGROUP, base, column + 3u * WORKGROUP, end);
        workgroupBarrier();
        let own = 4u * lane;
        let a = tile_at(own);
        let b = apply(a, tile_at(own + 1u));
        let c = apply(b, tile_at(own + 2u));
        let d = apply(c, tile_at(own + 3u));
        workgroup_scan(lane, d);
        var before = running;
        if (lane > 0u) {
            before = apply(running, workgroup_scanned(lane - 1u));
        }
        place(own, apply(before, a));
        place(own + 1u, apply(before, b));
        place(own + 2u, apply(before, c));
        place(own + 3u, apply(before, d));
        running = apply(running, workgroup_scanned(WORKGROUP - 1u));
        workgroupBarrier();
        put(lane, base, column, end);
        put(lane + WORKGROUP, base, column + WORKGROUP, end);
        put(lane + 2u * WORKGROUP, base, column + 2u * WORKGROUP, end);
        put(lane + 3u * WORKGROUP, base, column + 3u * WORKGROUP, end);
        workgroupBarrier();  // the next tile takes the slots
    }
}
