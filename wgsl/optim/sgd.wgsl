// g = sign * grad + decay * param;  buffer = keep * buffer + take * g;  param -= rate * step        in place
// step = g without HAS_BUFFER, else g + nesterov * buffer with NESTEROV, else buffer
//
// param   (count)   contiguous
// grad    (count)   contiguous
// buffer  (count)   contiguous; used only with HAS_BUFFER
// grid    one workgroup per WORKGROUP elements, one lane each
// source  Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning"

const WORKGROUP = 256u;
const HAS_BUFFER = true;
const NESTEROV = false;

struct Params {
    param_offset: u32,
    grad_offset: u32,
    buffer_offset: u32,
    count: u32,
    sign: f32,
    decay: f32,
    keep: f32,
    take: f32,
    nesterov: f32,
    rate: f32,
}

@group(0) @binding(0) var<storage, read_write> param: array<f32>;
@group(0) @binding(1) var<storage, read> grad: array<f32>;
@group(0) @binding(2) var<storage, read_write> buffer: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_grad(i: u32) -> f32 { return grad[params.grad_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let p = param[params.param_offset + i];
    var g = params.sign * load_grad(i);
    // not zero times an infinite parameter
    if (params.decay != 0.0) { g += params.decay * p; }
    var step = g;
    if (HAS_BUFFER) {
        let moved = params.keep * buffer[params.buffer_offset + i] + params.take * g;
        buffer[params.buffer_offset + i] = moved;
        step = moved;
        if (NESTEROV) {
            step = g + params.nesterov * moved;
        }
    }
    param[params.param_offset + i] = p - params.rate * step;
}
