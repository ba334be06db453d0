// out[o, p, i] = the product of part p of x[o, :, i]
//
// What reduce/product/parts makes, of floats, for GPUs.
//
// x      (outer, columns, inner)   contiguous
// out    (outer, parts, inner)
// grid   one invocation per part, which is `chunk` long
// turns  chunk
// uses   product, lane_product

alias U = vec2<u32>;
const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    count: u32,
    columns: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: U) { out[i] = value; }
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
    let own = min(start + params.chunk, params.columns) - start;
    let first = (outer * params.columns + start) * params.inner + inner;
    // no axis has 2^31 columns
    store_out(place, result(lane_product(first, params.inner, own, params.columns >> 31u)));
}
