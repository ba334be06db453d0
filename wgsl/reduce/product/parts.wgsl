// out[o, p, i] = the product of part p of x[o, :, i]
//
// Of floats, by default with the range that wgsl/parts/product/product.wgsl has, so that neither a part nor the
// whole is infinite or 0 before its time. First of the dispatches of a running product, see
// reduce/product/scan; and those of a product over a long axis, each of which has the parts of the one
// before as `x`, and whose last one makes floats.
//
// x      (outer, columns, inner)   contiguous
// out    (outer, parts, inner)
// grid   one invocation per part, which is `chunk` long
// turns  chunk
// uses   product

alias X = f32;
alias U = vec2<u32>;
const WORKGROUP = 16u;

struct Params {
    x_offset: u32,
    count: u32,
    columns: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> out: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn store_out(i: u32, value: U) { out[i] = value; }
fn factor(value: X) -> vec2<u32> { return product_of(value); }
fn result(value: vec2<u32>) -> U { return value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (place >= params.count) {
        return;
    }
    let inner = place % params.inner;
    let part = place / params.inner % params.parts;
    let outer = place / params.inner / params.parts;
    let start = part * params.chunk;
    let end = min(start + params.chunk, params.columns);
    var running = PRODUCT_ONE;
    var at = (outer * params.columns + start) * params.inner + inner;
    var column = start;
    for (; column + 3u < end; column += 4u) {
        let a = factor(load_x(at));
        let b = factor(load_x(at + params.inner));
        let c = factor(load_x(at + 2u * params.inner));
        let d = factor(load_x(at + 3u * params.inner));
        running = product_times(running, product_times(product_times(a, b), product_times(c, d)));
        at += 4u * params.inner;
    }
    for (; column < end; column++) {
        running = product_times(running, factor(load_x(at)));
        at += params.inner;
    }
    store_out(place, result(running));
}
