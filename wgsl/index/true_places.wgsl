// out[axis, ends[i] - 1] = i / inner % length   where ends[i] is larger than the one before
//   the places of what is true along an axis of this length
//
// ends   (count,)          int32, the running sum of what is true
// out    (axes, places)    int64
// grid   one workgroup per WORKGROUP elements, one lane each

const WORKGROUP = 64u;

struct Params {
    ends_offset: u32,
    count: u32,
    places: u32,
    axis: u32,
    length: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> ends: array<i32>;
@group(0) @binding(1) var<storage, read_write> out: array<vec2<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_ends(i: u32) -> i32 { return ends[params.ends_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let end = u32(load_ends(k));
    var before = 0u;
    if (k > 0u) {
        before = u32(load_ends(k - 1u));
    }
    if (end > before && end <= params.places) {
        out[params.axis * params.places + end - 1u] = vec2<u32>(k / params.inner % params.length, 0u);
    }
}
