// out[z, i] = sum(partial[z, p, i] for p) + bias[i / plane % columns]     the parts of a product
//
// The parts are added in order, so that a product has the same bits at every run.
//
// partial  (batch, parts, size)   what a kernel wrote part by part
// bias     (columns)              read only with HAS_BIAS
// out      (batch, size)          contiguous
// grid     one invocation per element
// fuses    -> out
// turns    parts

const HAS_BIAS = false;

const WORKGROUP = 64u;

struct Params {
    bias_offset: u32,
    count: u32,
    size: u32,
    parts: u32,
    plane: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_partial(i: u32) -> f32 { return partial[i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * groups.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let first = i / params.size * params.parts * params.size + i % params.size;
    var sum = load_partial(first);
    for (var part = 1u; part < params.parts; part++) {
        sum += load_partial(first + part * params.size);
    }
    if (HAS_BIAS) {
        sum += load_bias(i / params.plane % params.columns);
    }
    store_out(i, sum);
}
