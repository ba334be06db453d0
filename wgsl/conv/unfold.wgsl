// out[n, t, q] = x[n, q * stride + t * dilation - padding]: what each window meets, tap by tap
//   (im2col); what lies outside of x is zero
//
// x     (planes, in_height, in_width)                       contiguous
// out   (planes, taps down, taps across, out_height, out_width)
// grid  one invocation per output
alias T = f32;

const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    outputs: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    // by axis: kernel, stride, padding, dilation
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    let tap = i / (params.out_width * params.out_height);
    let plane = tap / (params.horizontal.x * params.vertical.x);
    let tap_y = tap / params.horizontal.x % params.vertical.x;
    let tap_x = tap % params.horizontal.x;
    // modulo 2^32: a place before the edge is a large number
    let y = i / params.out_width % params.out_height * params.vertical.y
        + tap_y * params.vertical.w - params.vertical.z;
    let x = i % params.out_width * params.horizontal.y
        + tap_x * params.horizontal.w - params.horizontal.z;
    let inside = y < params.in_height && x < params.in_width;
    let place = (plane * params.in_height + y) * params.in_width + x;
    store_out(i, select(T(), load_x(select(0u, place, inside)), inside));
}
