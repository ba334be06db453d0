// last[place(s)] = max(s + 1)
//
// The number of the last source that goes to each place, from 1 on; 0 where there is none, as index/segment_base
// left it. Then index/put_sources.
//
// index  (outer, sources, inner)   contiguous, int64; parts/scatter_place says where a source goes
// last   (outer, limit, inner)     u32
// grid   one workgroup per 4 * WORKGROUP sources; a lane has four, WORKGROUP apart
// turns  4
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
@group(0) @binding(1) var<storage, read_write> last: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }

fn mark(k: u32, place: u32) {
    if (place != 0xffffffffu) { atomicMax(&last[place], k + 1u); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let index_0 = load_index(first);
        let index_1 = load_index(first + WORKGROUP);
        let index_2 = load_index(first + 2u * WORKGROUP);
        let index_3 = load_index(first + 3u * WORKGROUP);
        mark(first, scatter_place(first, index_0));
        mark(first + WORKGROUP, scatter_place(first + WORKGROUP, index_1));
        mark(first + 2u * WORKGROUP, scatter_place(first + 2u * WORKGROUP, index_2));
        mark(first + 3u * WORKGROUP, scatter_place(first + 3u * WORKGROUP, index_3));
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) { mark(k, scatter_place(k, load_index(k))); }
}
