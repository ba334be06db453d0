// out[o, s, i] = (o * limit + index[o, s, i]) * inner + i
//   where each source of a scatter goes
//
// index  (outer, sources, inner)   contiguous, int64; a bad one is reported and goes nowhere (the
//        largest u32)
// out    (outer, sources, inner)   u32
// grid   one workgroup per WORKGROUP elements, one lane each
// uses   scatter_place

const WORKGROUP = 64u;

struct Params {
    index_offset: u32,
    op: u32,
    count: u32,
    limit: u32,
    sources: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }
fn store_out(i: u32, value: u32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    store_out(k, scatter_place(k, load_index(k)));
}
