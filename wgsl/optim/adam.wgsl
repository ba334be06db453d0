// p = shrink * param;  g = sign * grad + decay * p
// mean += take1 * (g - mean);  square = keep2 * square + take2 * g^2;  largest = max(largest, square)
// param = p - rate * mean / (sqrt(square or largest) / root + eps)        in place
//
// param    (count)   contiguous
// grad     (count)   contiguous
// mean     (count)   contiguous
// square   (count)   contiguous
// largest  (count)   contiguous; used only with AMSGRAD
// grid     one workgroup per WORKGROUP elements, one lane each
// source   Kingma and Ba 2015, "Adam", algorithm 1; Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization"

const WORKGROUP = 256u;
const AMSGRAD = false;

struct Params {
    param_offset: u32,
    grad_offset: u32,
    mean_offset: u32,
    square_offset: u32,
    largest_offset: u32,
    count: u32,
    sign: f32,
    shrink: f32,
    decay: f32,
    take1: f32,
    keep2: f32,
    take2: f32,
    root: f32,
    eps: f32,
    rate: f32,
}

@group(0) @binding(0) var<storage, read_write> param: array<f32>;
@group(0) @binding(1) var<storage, read> grad: array<f32>;
@group(0) @binding(2) var<storage, read_write> mean: array<f32>;
@group(0) @binding(3) var<storage, read_write> square: array<f32>;
@group(0) @binding(4) var<storage, read_write> largest: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_grad(i: u32) -> f32 { return grad[params.grad_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let p = params.shrink * param[params.param_offset + i];
    var g = params.sign * load_grad(i);
    // not zero times an infinite parameter
    if (params.decay != 0.0) { g += params.decay * p; }
    let before = mean[params.mean_offset + i];
    let first = before + params.take1 * (g - before);
    mean[params.mean_offset + i] = first;
    var second = params.keep2 * square[params.square_offset + i] + params.take2 * g * g;
    square[params.square_offset + i] = second;
    if (AMSGRAD) {
        second = max(second, largest[params.largest_offset + i]);
        largest[params.largest_offset + i] = second;
    }
    param[params.param_offset + i] = p - params.rate * first / (sqrt(second) / params.root + params.eps);
}
