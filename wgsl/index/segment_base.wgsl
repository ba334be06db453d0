// out[k] = x[k], or 0
//
// What sources are collected into; then index/segments, or index/last_sources.
//
// x      (count,)   contiguous; read only with HAS_BASE
// out    (count,)
// grid   one workgroup per WORKGROUP elements, one lane each

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

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    var value = T();
    if (HAS_BASE) {
        value = load_x(k);
    }
    store_out(k, value);
}
