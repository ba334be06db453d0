// out[k] = x[k], or 0
//
// What sources are collected into; then index/segments, or index/last_sources.
//
// x      (count,)   contiguous; read only with HAS_BASE
// out    (count,)
// grid   one workgroup per four times WORKGROUP elements; a lane makes four, WORKGROUP apart
// turns  4

alias T = f32;
const WORKGROUP = 64u;
const HAS_BASE = true;

struct Params {
    x_offset: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

fn begun(k: u32) -> T {
    if (HAS_BASE) {
        return load_x(k);
    }
    return T();
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let value_0 = begun(first);
        let value_1 = begun(first + WORKGROUP);
        let value_2 = begun(first + 2u * WORKGROUP);
        let value_3 = begun(first + 3u * WORKGROUP);
        store_out(first, value_0);
        store_out(first + WORKGROUP, value_1);
        store_out(first + 2u * WORKGROUP, value_2);
        store_out(first + 3u * WORKGROUP, value_3);
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        store_out(k, begun(k));
    }
}
