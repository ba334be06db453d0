// out[k] = the sum of 16 chains of v = v * scale + shift, each of 8 * `rounds` links; what a device can compute
//
// out   (invocations)
// grid  one workgroup per WORKGROUP values
// turns rounds

const WORKGROUP = 256u;

struct Params {
    scale: f32,
    shift: f32,
    rounds: u32,
}

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn step(v: vec4<f32>) -> vec4<f32> { return fma(v, vec4<f32>(params.scale), vec4<f32>(params.shift)); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var a = vec4<f32>(0.0, 1.0, 2.0, 3.0) + f32(id.x & 255u);
    var b = a + 4.0;
    var c = a + 8.0;
    var d = a + 12.0;
    for (var round = 0u; round < params.rounds; round++) {
        a = step(step(step(step(step(step(step(step(a))))))));
        b = step(step(step(step(step(step(step(step(b))))))));
        c = step(step(step(step(step(step(step(step(c))))))));
        d = step(step(step(step(step(step(step(step(d))))))));
    }
    let sum = a + b + c + d;
    out[id.x] = sum.x + sum.y + sum.z + sum.w;
}
