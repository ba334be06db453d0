// out[i] = apply(a[i], b[i], ...) for every element i of a large result, operands broadcast
//
// An invocation makes four elements, or four words of packed ones, WORKGROUP apart. It asks for the
// operands of all before it computes any, for no compiler moves a load past a branch of `apply`, and
// computes all before it stores any. Of the largest results `placed` lets every other launch begin at the
// end, where the last one left what it read and wrote in the cache.
//
// a, b, ...  any strides; a number instead of a tensor is a field of Params
// out        contiguous, or any strides where it is a view of unpacked elements, written in place
// grid       one invocation per four elements or words
// turns      4
//
// This file stands for the unary case on float32. The host writes what elementwise/map says, and
// store_element instead of store_out. Where elements are packed made(i, held) makes a whole word, and
// nothing is held.
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
fn placed(group: u32) -> u32 { return group; }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = placed(id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let held_0 = hold(first);
        let held_1 = hold(first + WORKGROUP);
        let held_2 = hold(first + 2u * WORKGROUP);
        let held_3 = hold(first + 3u * WORKGROUP);
        let value_0 = made(first, held_0);
        let value_1 = made(first + WORKGROUP, held_1);
        let value_2 = made(first + 2u * WORKGROUP, held_2);
        let value_3 = made(first + 3u * WORKGROUP, held_3);
        store_element(first, value_0);
        store_element(first + WORKGROUP, value_1);
        store_element(first + 2u * WORKGROUP, value_2);
        store_element(first + 3u * WORKGROUP, value_3);
        return;
    }
    for (var i = first; i < params.count; i += WORKGROUP) {
        store_element(i, element(i));
    }
}
