// out[k] = exp(-pi i k^2 / count)
//
// out   (count,)
// grid  one invocation per element
// turns 67
//
// source  L. I. Bluestein, A linear filtering approach to the computation of discrete Fourier transform, 1970

const WORKGROUP = 64u;

struct Params { count: u32, step_high: f32, step_low: f32 }

@group(0) @binding(0) var<storage, read_write> out: array<vec2<f32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn store_out(i: u32, value: vec2<f32>) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let period = 2u * params.count;
    let k = i64_divide_unsigned(i64_mul_words(i, i), vec2<u32>(period, 0u)).z;
    store_out(i, unit_root(k, period, vec2<f32>(params.step_high, params.step_low)));
}
