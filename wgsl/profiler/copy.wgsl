// out[k] = x[k] for all k, `rounds` times over; what a device can move
//
// x     (count)   vectors of four
// out   (count)
// grid  one workgroup per WORKGROUP vectors; `count` is a power of two
//
// Every round takes an invocation to another place, so that no compiler makes one round of all.

const WORKGROUP = 256u;

struct Params {
    count: u32,
    shift: u32,
    rounds: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(1) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var round = 0u; round < params.rounds; round++) {
        let k = (id.x + round * params.shift) & (params.count - 1u);
        out[k] = x[k];
    }
}
