// One step of an optimizer: an element of the parameter, of its gradient and of the states, in place
//
// The host writes the rule of each optimizer in the place of the one here, plain gradient descent, with the
// numbers it names, and leaves out the states it does not use (`optim/update.py`).
//
// param    (count)   contiguous
// grad     (count)   contiguous
// state_0  (count)   contiguous, and so are state_1 and state_2
// grid     one workgroup per WORKGROUP elements, one lane each

const WORKGROUP = 256u;

struct Params { param_offset: u32, grad_offset: u32, count: u32, rate: f32 }

@group(0) @binding(0) var<storage, read_write> param: array<f32>;
@group(0) @binding(1) var<storage, read> grad: array<f32>;
@group(0) @binding(2) var<storage, read_write> state_0: array<f32>;
@group(0) @binding(3) var<storage, read_write> state_1: array<f32>;
@group(0) @binding(4) var<storage, read_write> state_2: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_grad(i: u32) -> f32 { return grad[params.grad_offset + i]; }
fn update(i: u32) { param[params.param_offset + i] -= params.rate * load_grad(i); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i < params.count) {
        update(i);
    }
}
