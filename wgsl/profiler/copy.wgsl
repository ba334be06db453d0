// out[k] = x[k] for all k, as many times over as the grid has workgroups for; what a device can move
//
// x     (count)   vectors of four
// out   (count)
// grid  one workgroup per WORKGROUP * 4 vectors and round; `count` is a power of two and as many at least
//
// Rounds are in the grid, not in a loop: workgroups begin in their order, so all of the buffer was swept before a
// place comes again, and no cache that is smaller has it still. Four loads of an invocation are on their way at once.

const WORKGROUP = 256u;

struct Params {
    count: u32,
    groups: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(1) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let group = id.y * count.x + id.x;
    if group >= params.groups {
        return;
    }
    // The product may pass 2^32: what is left of it is right, since `count` divides that.
    let k = ((group * 4u * WORKGROUP) & (params.count - 1u)) + lane;
    let a = x[k];
    let b = x[k + WORKGROUP];
    let c = x[k + 2u * WORKGROUP];
    let d = x[k + 3u * WORKGROUP];
    out[k] = a;
    out[k + WORKGROUP] = b;
    out[k + 2u * WORKGROUP] = c;
    out[k + 3u * WORKGROUP] = d;
}
