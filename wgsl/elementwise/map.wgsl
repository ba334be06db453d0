// out[i] = apply(a[i], b[i], ...) for every element i of the result, operands broadcast
//
// a, b, ...  any strides; a number instead of a tensor is a field of Params
// out        contiguous, or any strides where it is a view that is written in place
// grid       one invocation per word of a contiguous out (1, 2 or 4 elements), else one per element
//
// This file stands for the unary case on float32. The host writes bindings, Params, index_<operand>,
// load_<operand>, apply, hold, made, element and store_out for the operands of each op. Large results
// are made by elementwise/map_many.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params { count: u32, a_offset: u32 }
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn index_a(i: u32) -> u32 { return params.a_offset + i; }
fn load_a(i: u32) -> f32 { return a[index_a(i)]; }
fn apply(a: f32) -> f32 { return a; }
struct Held { a: f32 }
fn hold(i: u32) -> Held { return Held(load_a(i)); }
fn made(i: u32, held: Held) -> f32 { return apply(held.a); }
fn element(i: u32) -> f32 { return made(i, hold(i)); }
fn store_out(i: u32) { out[i] = element(i); }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i < params.count) {
        store_out(i);
    }
}
