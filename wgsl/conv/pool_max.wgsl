// values[n, q]  = the largest x[n, p] for p in window q, which is NaN if one of them is
// indices[n, q] = p in its plane: the first of equal ones, the last NaN
//
// x        (planes, in_height, in_width)     contiguous
// known, places   likewise, of other taps; read only with GOES_ON
// values   (planes, out_height, out_width)
// indices  (planes, out_height, out_width)   -1 where a window lies outside of the image
// grid     one invocation per output
// turns    (box[1] - box[0]) * (box[3] - box[2] + 1)
// uses     nan, pool_window

// Whether what a dispatch before this found, of other taps, is taken up.
const GOES_ON = false;
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
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> known: array<f32>;
@group(0) @binding(2) var<storage, read> places: array<i32>;
@group(0) @binding(3) var<storage, read_write> values: array<f32>;
@group(0) @binding(4) var<storage, read_write> indices: array<i32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_known(i: u32) -> f32 { return known[i]; }
fn load_places(i: u32) -> i32 { return places[i]; }
fn store_values(i: u32, value: f32) { values[i] = value; }
fn store_indices(i: u32, value: i32) { indices[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    let down = window_reach(i / params.out_width % params.out_height, params.vertical,
        params.in_height, params.out_height);
    let across = window_reach(i % params.out_width, params.horizontal, params.in_width,
        params.out_width);
    let base = i / (params.out_width * params.out_height) * params.in_height * params.in_width;
    var best = bitcast<f32>(0xff800000u | (i & 0u));
    var found = -1;
    if (GOES_ON) {
        best = load_known(i);
        found = load_places(i);
    }
    for (var tap_y = params.box.x; tap_y < params.box.y; tap_y++) {
        let y = down.x + tap_y * params.vertical.w;
        if (y >= down.y) {
            continue;
        }
        for (var tap_x = params.box.z; tap_x < params.box.w; tap_x++) {
            let x = across.x + tap_x * params.horizontal.w;
            if (x >= across.y) {
                continue;
            }
            let place = y * params.in_width + x;
            let value = load_x(base + place);
            if (found < 0 || is_nan(value) || (!is_nan(best) && value > best)) {
                best = value;
                found = i32(place);
            }
        }
    }
    store_values(i, best);
    store_indices(i, found);
}
