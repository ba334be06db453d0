// out[i] = apply(a[i], b[i], ...) for every element i of a large result, operands broadcast
//
// An invocation makes four neighbours, which have a block of random words in common.
//
// a, b, ...  any strides; a number instead of a tensor is a field of Params
// out        contiguous, or any strides where it is a view that is written in place; a word an element
// grid       one invocation per four elements
// turns      4
//
// This file stands for the unary case on float32. The host writes what elementwise/map says, and
// store_element instead of store_out.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
struct Params { count: u32, a_offset: u32 }
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 256u;

fn index_a(i: u32) -> u32 { return params.a_offset + i; }
fn load_a(i: u32) -> f32 { return a[index_a(i)]; }
fn apply(a: f32) -> f32 { return a; }
struct Held { a: f32 }
fn hold(i: u32) -> Held { return Held(load_a(i)); }
fn made(i: u32, held: Held) -> f32 { return apply(held.a); }
fn element(i: u32) -> f32 { return made(i, hold(i)); }
fn store_element(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = 4u * ((id.y * count.x + id.x) * WORKGROUP + lane);
    if (first + 3u < params.count) {
        let value_0 = element(first);
        let value_1 = element(first + 1u);
        let value_2 = element(first + 2u);
        let value_3 = element(first + 3u);
        store_element(first, value_0);
        store_element(first + 1u, value_1);
        store_element(first + 2u, value_2);
        store_element(first + 3u, value_3);
        return;
    }
    for (var i = first; i < params.count; i++) {
        store_element(i, element(i));
    }
}
