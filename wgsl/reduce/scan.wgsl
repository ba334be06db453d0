// out[row, c] = apply(x[row, 0], ..., x[row, c])        by default a running sum
//
// x      (rows, columns)         contiguous
// carry  (rows, columns / chunk) inclusive scan of the chunks' totals; unused when there is one
//        chunk
// out    (rows, columns)
// grid   one workgroup per row and chunk; it walks the chunk in steps of four elements a lane
// fuses  x -> out
// turns  (chunk // WORKGROUP // 4 + 1) * 64
// uses   workgroup_scan

alias T = f32;
const WORKGROUP = 256u;
const IDENTITY = T(0);

struct Params {
    x_offset: u32,
    carry_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> carry: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_carry(i: u32) -> T { return carry[params.carry_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }

fn fetch(base: u32, column: u32, end: u32) -> T {
    if (column < end) {
        return load_x(base + column);
    }
    return IDENTITY;
}

fn put(base: u32, column: u32, end: u32, value: T) {
    if (column < end) {
        store_out(base + column, value);
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
    var running = IDENTITY;
    if (part > 0u) {
        running = load_carry(row * params.parts + part - 1u);
    }
    for (var start = part * params.chunk; start < end; start += 4u * WORKGROUP) {
        let column = start + 4u * lane;
        let a = fetch(base, column, end);
        let b = apply(a, fetch(base, column + 1u, end));
        let c = apply(b, fetch(base, column + 2u, end));
        let d = apply(c, fetch(base, column + 3u, end));
        workgroup_scan(lane, d);
        var before = running;
        if (lane > 0u) {
            before = apply(running, workgroup_scanned(lane - 1u));
        }
        put(base, column, end, apply(before, a));
        put(base, column + 1u, end, apply(before, b));
        put(base, column + 2u, end, apply(before, c));
        put(base, column + 3u, end, apply(before, d));
        running = apply(running, workgroup_scanned(WORKGROUP - 1u));
    }
}
