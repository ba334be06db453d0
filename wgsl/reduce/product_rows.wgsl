// out[o, p] = the product of part p of x[o, :]
//
// What reduce/product_parts makes, for GPUs: the lanes of a workgroup share a part.
//
// x      (outer, columns)   contiguous
// out    (outer, parts)
// grid   one workgroup per part, which is `chunk` long
// turns  chunk // WORKGROUP + 64
// uses   product, workgroup_fold

alias X = f32;
alias T = vec2<u32>;
alias U = vec2<u32>;
const WORKGROUP = 256u;

struct Params {
    x_offset: u32,
    count: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> out: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn store_out(i: u32, value: U) { out[i] = value; }
fn factor(value: X) -> T { return product_of(value); }
fn result(value: T) -> U { return value; }
fn apply(a: T, b: T) -> T { return product_times(a, b); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.count) {
        return;
    }
    let part = group % params.parts;
    let base = group / params.parts * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    var even = PRODUCT_ONE;
    var odd = PRODUCT_ONE;
    var column = part * params.chunk + lane;
    for (; column + WORKGROUP < end; column += 2u * WORKGROUP) {
        even = product_times(even, factor(load_x(base + column)));
        odd = product_times(odd, factor(load_x(base + column + WORKGROUP)));
    }
    if (column < end) {
        even = product_times(even, factor(load_x(base + column)));
    }
    let value = workgroup_fold(lane, product_times(even, odd));
    if (lane == 0u) {
        store_out(group, result(value));
    }
}
