// out[n, p] = sum(x[n, t, q] for taps t and windows q with q * stride + t * dilation - padding = p):
//   the transpose of conv/unfold (col2im)
//
// x     (planes, taps down, taps across, out_height, out_width)   contiguous
// out   (planes, in_height, in_width)
// grid  one invocation per output
// fuses -> out
// turns (box[1] - box[0]) * (box[3] - box[2] + 1)
// uses  pool_window

const ADAPTIVE = false;
const COUNT_PADDING = false;

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
    // the taps that are looked at: first and end of rows, first and end of columns
    box: vec4<u32>,
    // where in out the sums go: there may be several parts of them
    out_start: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    let place_y = i / params.in_width % params.in_height;
    let place_x = i % params.in_width;
    let plane = i / (params.in_width * params.in_height) * params.vertical.x;
    var sum = 0.0;
    for (var tap_y = params.box.x; tap_y < params.box.y; tap_y++) {
        let q_y = window_of_tap(place_y, tap_y, params.vertical, params.in_height,
            params.out_height);
        if (q_y >= params.out_height) {
            continue;
        }
        for (var tap_x = params.box.z; tap_x < params.box.w; tap_x++) {
            let q_x = window_of_tap(place_x, tap_x, params.horizontal, params.in_width,
                params.out_width);
            if (q_x < params.out_width) {
                let tap = (plane + tap_y) * params.horizontal.x + tap_x;
                sum += load_x((tap * params.out_height + q_y) * params.out_width + q_x);
            }
        }
    }
    store_out(params.out_start + i, sum);
}
