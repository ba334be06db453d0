// out[b, i, j] = sum over l of a[b, i, l] * b[b, l, j]     of integers, which wrap
//
// a      (batch, rows, depth)      any strides
// b      (batch, depth, columns)   any strides
// out    (batch, rows, columns)
// grid   one invocation per element of out
// turns  depth

alias T = vec2<u32>;
const WORKGROUP = 64u;

struct Params {
    a_offset: u32,
    b_offset: u32,
    count: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    inner: u32,
    a_outer: i32,
    a_inner: i32,
    a_row: i32,
    a_column: i32,
    b_outer: i32,
    b_inner: i32,
    b_row: i32,
    b_column: i32,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_a(i: u32) -> T { return a[params.a_offset + i]; }
fn load_b(i: u32) -> T { return b[params.b_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn combined(sum: T, x: T, y: T) -> T { return i64_add(sum, i64_mul(x, y)); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let column = i32(k % params.columns);
    let row = i32(k / params.columns % params.rows);
    let batch = k / (params.columns * params.rows);
    let outer = i32(batch / params.inner);
    let inner = i32(batch % params.inner);
    var i = outer * params.a_outer + inner * params.a_inner + row * params.a_row;
    var j = outer * params.b_outer + inner * params.b_inner + column * params.b_column;
    var sum = T();
    for (var l = 0u; l < params.depth; l++) {
        sum = combined(sum, load_a(u32(i)), load_b(u32(j)));
        i += params.a_column;
        j += params.b_row;
    }
    store_out(k, sum);
}
