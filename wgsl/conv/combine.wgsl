// out[i] = sum(x[p, i] for p) + bias[i / plane % rows]
//
// x     (parts, outputs)
// bias  (rows)      read only with HAS_BIAS
// out   (outputs)
// grid  one invocation per output

const HAS_BIAS = false;

const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    bias_offset: u32,
    outputs: u32,
    parts: u32,
    plane: u32,
    rows: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    var sum = 0.0;
    for (var part = 0u; part < params.parts; part++) {
        sum += load_x(part * params.outputs + i);
    }
    if (HAS_BIAS) {
        sum += load_bias(i / params.plane % params.rows);
    }
    store_out(i, sum);
}
