// out[n, p] = sum(x[n, q] for windows q with indices[n, q] = p): the derivative of the largest of
//   each window
//
// x        (planes, out_height, out_width)   contiguous; of the largest
// indices  (planes, out_height, out_width)   where they were found in their plane
// out      (planes, in_height, in_width)     of what they were taken of
// grid     one invocation per output; it asks every window that holds it, always in one order
// fuses    -> out
// turns    (box[1] - box[0]) * (box[3] - box[2] + 1)
// uses     pool_window

const ADAPTIVE = false;
const COUNT_PADDING = false;

const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    indices_offset: u32,
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
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_indices(i: u32) -> i32 { return indices[params.indices_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    let area = params.in_height * params.in_width;
    let place = i % area;
    let base = i / area * params.out_height * params.out_width;
    var sum = 0.0;
    for (var tap_y = params.box.x; tap_y < params.box.y; tap_y++) {
        let q_y = window_of_tap(place / params.in_width, tap_y, params.vertical, params.in_height,
            params.out_height);
        if (q_y >= params.out_height) {
            continue;
        }
        for (var tap_x = params.box.z; tap_x < params.box.w; tap_x++) {
            let q_x = window_of_tap(place % params.in_width, tap_x, params.horizontal,
                params.in_width, params.out_width);
            if (q_x >= params.out_width) {
                continue;
            }
            let q = base + q_y * params.out_width + q_x;
            if (load_indices(q) == i32(place)) {
                sum += load_x(q);
            }
        }
    }
    store_out(params.out_start + i, sum);
}
