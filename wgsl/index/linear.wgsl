// out[k] = previous[k] * limit + index[k]
//   the row-major position of a tuple of indices, one axis a dispatch
//
// previous  (count)   int64, its low word, read only with HAS_PREVIOUS
// index     (count)   int64; negative ones count from the end; a bad one is reported and becomes 0
// out       (count)   int64
// grid      one workgroup per WORKGROUP elements, one lane each
// uses      status

const WORKGROUP = 64u;
const HAS_PREVIOUS = false;

struct Params {
    previous_offset: u32,
    index_offset: u32,
    op: u32,
    count: u32,
    limit: u32,
}

@group(0) @binding(0) var<storage, read> previous: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_previous(i: u32) -> vec2<u32> { return previous[params.previous_offset + i]; }
fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }
fn store_out(i: u32, value: u32) { out[i] = vec2<u32>(value, 0u); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    var position = checked_index(load_index(k), params.limit, true);
    if (HAS_PREVIOUS) {
        position += load_previous(k).x * params.limit;
    }
    store_out(k, position);
}
