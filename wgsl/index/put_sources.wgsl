// out[r, c] = src[last[r] - 1, c],  x[r, c] where last[r] is 0
//
// x      (rows, width)      contiguous
// last   (rows)             u32
// src    (sources, width)   contiguous
// out    (rows, width)
// grid   one workgroup per WORKGROUP elements of out, one lane each
// fuses  -> out

alias T = f32;
const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    last_offset: u32,
    src_offset: u32,
    count: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> last: array<u32>;
@group(0) @binding(2) var<storage, read> src: array<T>;
@group(0) @binding(3) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_last(i: u32) -> u32 { return last[params.last_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let found = load_last(k / params.width);
    var value = load_x(k);
    if (found > 0u) {
        value = load_src((found - 1u) * params.width + k % params.width);
    }
    store_out(k, value);
}
