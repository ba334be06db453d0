// out[axis, ends[i] - 1] = i / inner % length   where ends[i] is larger than the one before
//   the places of what is true along an axis of this length
//
// ends   (count,)          int32, the running sum of what is true
// out    (axes, places)    int64
// grid   one workgroup per 4 * WORKGROUP elements; a lane looks at four, WORKGROUP apart
// turns  4

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

// The running sum at an element, and before it.
fn step_at(k: u32) -> vec2<u32> {
    let before = u32(load_ends(max(k, 1u) - 1u));
    return vec2<u32>(u32(load_ends(k)), select(before, 0u, k == 0u));
}

fn put(k: u32, step: vec2<u32>) {
    if (step.x > step.y && step.x <= params.places) {
        // divisions take longer than all else
        var place = k;
        if (params.inner > 1u) { place /= params.inner; }
        if (place >= params.length) { place %= params.length; }
        out[params.axis * params.places + step.x - 1u] = vec2<u32>(place, 0u);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let a = step_at(first);
        let b = step_at(first + WORKGROUP);
        let c = step_at(first + 2u * WORKGROUP);
        let d = step_at(first + 3u * WORKGROUP);
        put(first, a);
        put(first + WORKGROUP, b);
        put(first + 2u * WORKGROUP, c);
        put(first + 3u * WORKGROUP, d);
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        put(k, step_at(k));
    }
}
