// out[r, c] = x[r, 0] * ... * x[r, c]     the running product of each row, of floats
//
// In parts where rows are long: each goes on from the product of those before it. PyTorch multiplies
// in float64; here products have 32 bits and a wide range.
//
// x      (rows, columns)   contiguous
// carry  (rows, parts)     products up to the end of each part, as wgsl/parts/product/product.wgsl has them;
//        read only where there are several parts
// out    (rows, columns)
// grid   one invocation per part, which is `chunk` long
// turns  chunk
// uses   product

const WORKGROUP = 16u;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> carry: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (place >= params.rows * params.parts) {
        return;
    }
    let base = place / params.parts * params.columns;
    let part = place % params.parts;
    var running = PRODUCT_ONE;
    if (part > 0u) {
        running = carry[place - 1u];
    }
    let end = min((part + 1u) * params.chunk, params.columns);
    for (var column = part * params.chunk; column < end; column++) {
        running = product_times(running, product_of(load_x(base + column)));
        store_out(base + column, product_value(running));
    }
}
