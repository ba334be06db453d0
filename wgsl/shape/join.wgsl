// out[row, first + start_k + column] = k[row, column]: up to seven tensors side by side
//
// a, ..., g  (rows, width)         contiguous, each of its own width; those that are not needed repeat a
// out        (rows, out_columns)   of which these tensors make the columns from `first` on
// grid       one invocation per four elements of theirs, WORKGROUP apart, which are read before the first is
//            written
alias T = f32;

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read> c: array<T>;
@group(0) @binding(3) var<storage, read> d: array<T>;
@group(0) @binding(4) var<storage, read> e: array<T>;
@group(0) @binding(5) var<storage, read> f: array<T>;
@group(0) @binding(6) var<storage, read> g: array<T>;
@group(0) @binding(7) var<storage, read_write> out: array<T>;
// a_end, ..., g_end: where each ends, counted from the beginning of the first
struct Params {
    count: u32, out_columns: u32, first: u32,
    a_end: u32, b_end: u32, c_end: u32, d_end: u32, e_end: u32, f_end: u32, g_end: u32,
    a_offset: u32, b_offset: u32, c_offset: u32, d_offset: u32, e_offset: u32, f_offset: u32,
    g_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn load_a(i: u32) -> T { return a[params.a_offset + i]; }
fn load_b(i: u32) -> T { return b[params.b_offset + i]; }
fn load_c(i: u32) -> T { return c[params.c_offset + i]; }
fn load_d(i: u32) -> T { return d[params.d_offset + i]; }
fn load_e(i: u32) -> T { return e[params.e_offset + i]; }
fn load_f(i: u32) -> T { return f[params.f_offset + i]; }
fn load_g(i: u32) -> T { return g[params.g_offset + i]; }

fn put(i: u32, at: vec2<u32>, value: T) {
    if (i < params.count) { out[at.x * params.out_columns + params.first + at.y] = value; }
}

// The place of a column in a tensor whose columns lie between `begin` and `end`.
fn place(row: u32, column: u32, begin: u32, end: u32) -> u32 {
    return row * (end - begin) + column - begin;
}

// (row, column); past the end the last element comes again
fn row_and_column(i: u32) -> vec2<u32> {
    let known = min(i, params.count - 1u);
    let row = known / params.g_end;
    return vec2<u32>(row, known - row * params.g_end);
}

fn element(at: vec2<u32>) -> T {
    let row = at.x;
    let column = at.y;
    if (column < params.a_end) { return load_a(place(row, column, 0u, params.a_end)); }
    if (column < params.b_end) { return load_b(place(row, column, params.a_end, params.b_end)); }
    if (column < params.c_end) { return load_c(place(row, column, params.b_end, params.c_end)); }
    if (column < params.d_end) { return load_d(place(row, column, params.c_end, params.d_end)); }
    if (column < params.e_end) { return load_e(place(row, column, params.d_end, params.e_end)); }
    if (column < params.f_end) { return load_f(place(row, column, params.e_end, params.f_end)); }
    return load_g(place(row, column, params.f_end, params.g_end));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (i >= params.count) { return; }
    let at_0 = row_and_column(i);
    let at_1 = row_and_column(i + WORKGROUP);
    let at_2 = row_and_column(i + 2u * WORKGROUP);
    let at_3 = row_and_column(i + 3u * WORKGROUP);
    let value_0 = element(at_0);
    let value_1 = element(at_1);
    let value_2 = element(at_2);
    let value_3 = element(at_3);
    put(i, at_0, value_0);
    put(i + WORKGROUP, at_1, value_1);
    put(i + 2u * WORKGROUP, at_2, value_2);
    put(i + 3u * WORKGROUP, at_3, value_3);
}
