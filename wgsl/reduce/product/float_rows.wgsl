// out[o, p] = the product of part p of x[o, :]
//
// What reduce/product/rows makes, of floats: the lanes of a workgroup share a part.
//
// x      (outer, columns)   contiguous
// out    (outer, parts)
// grid   one workgroup per part, which is `chunk` long; neighbouring lanes load neighbours
// turns  chunk // WORKGROUP + 64
// uses   product, lane_product, product_fold

alias U = vec2<u32>;
const WORKGROUP = 256u;

struct Params {
    x_offset: u32,
    count: u32,
    columns: u32,
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
    let group = id.y * count.x + id.x;
    if (group >= params.count) {
        return;
    }
    let part = group % params.parts;
    let base = group / params.parts * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    let first = part * params.chunk + lane;
    let own = (max(end, first) - first + WORKGROUP - 1u) / WORKGROUP;
    // no row has 2^31 columns
    let near = lane_product(base + first, WORKGROUP, own, params.columns >> 31u);
    let value = product_fold(lane, near);
    if (lane == 0u) {
        store_out(group, result(value));
    }
}
