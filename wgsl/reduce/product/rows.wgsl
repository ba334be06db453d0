// out[o, p] = the product of part p of x[o, :]
//
// What reduce/product/parts makes, for GPUs: the lanes of a workgroup share a part.
//
// x      (outer, columns)   contiguous
// out    (outer, parts)
// grid   one workgroup per part, which is `chunk` long
// turns  chunk // WORKGROUP + 64
// uses   product, product_fold

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
    var own = PRODUCT_ONE;
    var column = part * params.chunk + lane;
    for (; column + 3u * WORKGROUP < end; column += 4u * WORKGROUP) {
        let a = factor(load_x(base + column));
        let b = factor(load_x(base + column + WORKGROUP));
        let c = factor(load_x(base + column + 2u * WORKGROUP));
        let d = factor(load_x(base + column + 3u * WORKGROUP));
        own = product_times(own, product_times(product_times(a, b), product_times(c, d)));
    }
    for (; column < end; column += WORKGROUP) {
        own = product_times(own, factor(load_x(base + column)));
    }
    let value = product_fold(lane, own);
    if (lane == 0u) {
        store_out(group, result(value));
    }
}
