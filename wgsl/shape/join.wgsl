// out[row, first + start_k + column] = k[row, column]: up to seven tensors side by side
//
// a, ..., g  (rows, width)         contiguous, each of its own width; those that are not needed repeat a
// out        (rows, out_columns)   of which these tensors make the columns from `first` on
// grid       one invocation per element of theirs
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

// The place of a column in a tensor whose columns lie between `begin` and `end`.
fn place(row: u32, column: u32, begin: u32, end: u32) -> u32 {
    return row * (end - begin) + column - begin;
}

fn element(row: u32, column: u32) -> T {
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
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) { return; }
    let row = i / params.g_end;
    let column = i % params.g_end;
    out[row * params.out_columns + params.first + column] = element(row, column);
}
