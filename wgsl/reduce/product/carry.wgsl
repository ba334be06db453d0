// out[r, p] = x[r, 0] * ... * x[r, p]
//
// Second of the dispatches of a running product; see reduce/product/scan.
//
// x      (rows, parts)     as wgsl/parts/product/product.wgsl has them
// out    (rows, parts)
// grid   one invocation per row
// turns  parts
// uses   product

const WORKGROUP = 16u;

struct Params {
    rows: u32,
    parts: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec2<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (row >= params.rows) {
        return;
    }
    var running = PRODUCT_ONE;
    for (var part = 0u; part < params.parts; part++) {
        let i = row * params.parts + part;
        running = product_times(running, x[i]);
        out[i] = running;
    }
}
