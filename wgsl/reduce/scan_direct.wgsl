// out[row, c] = result(apply(entry(x[row, 0]), ..., entry(x[row, c])))     by default a running sum
//
// Without workgroup memory, for adapters that run on a CPU. Every BLOCK elements are scanned from nothing
// and added to what is before them: small numbers that are added to a large sum one by one lose more.
//
// x      (rows, columns)         contiguous
// carry  (rows, columns / chunk) inclusive scan of the chunks' totals; unused when there is one
//        chunk
// out    (rows, columns)
// grid   one invocation per row and chunk
// fuses  x -> out
// turns  chunk

alias X = f32;
alias T = f32;
const WORKGROUP = 16u;
const BLOCK = 64u;

struct Params {
    x_offset: u32,
    carry_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> carry: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<X>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn load_carry(i: u32) -> T { return carry[params.carry_offset + i]; }
fn store_out(i: u32, value: X) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn entry(value: X) -> T { return value; }
fn result(value: T) -> X { return value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (group >= params.rows * params.parts) {
        return;
    }
    let row = group / params.parts;
    let part = group % params.parts;
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    var before = identity();
    if (part > 0u) {
        before = load_carry(row * params.parts + part - 1u);
    }
    var running = identity();
    var left = BLOCK;
    for (var column = part * params.chunk; column < end; column++) {
        running = apply(running, entry(load_x(base + column)));
        let value = apply(before, running);
        store_out(base + column, result(value));
        left -= 1u;
        if (left == 0u) {
            before = value;
            running = identity();
            left = BLOCK;
        }
    }
}
