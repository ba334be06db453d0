// out[o, j, i] = x[o, index[o, j, i], i]
//
// x       (outer, limit, inner)   contiguous
// index   (outer, picked, inner)  contiguous, int64; a bad one is reported and reads place 0
// out     (outer, picked, inner)
// grid    one workgroup per WORKGROUP elements of out, one lane each
// fuses   -> out
// uses    status

alias T = f32;
const WORKGROUP = 64u;
const WRAP = false;

struct Params {
    x_offset: u32,
    index_offset: u32,
    op: u32,
    count: u32,
    limit: u32,
    picked: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    // divisions take longer than all else
    let line = params.picked * params.inner;
    var outer = 0u;
    if (k >= line) { outer = k / line; }
    var inner = 0u;
    if (params.inner > 1u) { inner = k % params.inner; }
    let place = checked_index(load_index(k), params.limit, WRAP);
    store_out(k, load_x((outer * params.limit + place) * params.inner + inner));
}
