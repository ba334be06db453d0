// out[n, g, i, p] = bias[g, i] + sum(weight[g, i, c, e(t)] * x[n, g, c, place(p, t)] for c, t),
//   without workgroup memory
//
// For adapters that run on a CPU, where a barrier switches between all invocations of a workgroup,
// and for groups of few rows everywhere (a depthwise convolution has one): there tiles would be
// empty. An invocation makes ROWS rows of 4 pixels.
//
// x       (batch, groups, channels, in_height, in_width)    contiguous
// weight  (groups, rows, channels, KERNEL_Y, KERNEL_X)      contiguous; with TRANSPOSED
//         (groups, channels, rows, KERNEL_Y, KERNEL_X)
// bias    (groups, rows)                                    read only with HAS_BIAS
// out     (batch, groups, rows, out_height, out_width)
// grid    one invocation per (phase, group, ROWS rows, 4 pixels); neighbours have neighbouring
//         pixels, and the 4 of one are a quarter of all apart
// fuses   -> out
// turns   TAPS_Y * (TAPS_X * (channels + 1) + 1) + 64
// uses    conv_window

// 1, 2, 4 or 8.
const ROWS = 8u;
const HAS_BIAS = false;
const TRANSPOSED = false;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;
// Taps of a phase, at most.
const TAPS_Y = 3u;
const TAPS_X = 3u;

const WORKGROUP = 64u;
const KERNEL = KERNEL_Y * KERNEL_X;

struct Params {
    x_offset: u32,
    weight_offset: u32,
    bias_offset: u32,
    invocations: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    pixels: u32,
    grid_height: u32,
    grid_width: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_weight(i: u32) -> f32 { return weight[params.weight_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let number = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (number >= params.invocations) {
        return;
    }
    let across = (params.pixels + 3u) / 4u;
    let row_tiles = (params.rows + ROWS - 1u) / ROWS;
    let row = number / across % row_tiles * ROWS;
    var rest = number / (across * row_tiles);
    let group = rest % params.groups;
    rest /= params.groups;
    var phase = vec2<u32>();
    if (TRANSPOSED) {
        phase = vec2<u32>(rest % params.horizontal.x, rest / params.horizontal.x);
    }
    let vertical = conv_axis(params.vertical, KERNEL_Y, phase.y);
    let horizontal = conv_axis(params.horizontal, KERNEL_X, phase.x);
    let pixels = conv_pixels(
        vec4<u32>(number % across) + across * vec4<u32>(0u, 1u, 2u, 3u), group, phase, vertical,
        horizontal,
    );
    // rows past the last repeat it and are not stored
    let near_rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    let far_rows = min(vec4<u32>(row) + vec4<u32>(4u, 5u, 6u, 7u), vec4<u32>(params.rows - 1u));
    let row_step = select(params.channels * KERNEL, KERNEL, TRANSPOSED);
    let channel_step = select(KERNEL, params.rows * KERNEL, TRANSPOSED);
    let base = group * params.rows * params.channels * KERNEL;
    let plane = params.in_height * params.in_width;

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var tap_y = 0u; tap_y < TAPS_Y; tap_y++) {
        let y = vertical.first + tap_y * vertical.every;
        for (var tap_x = 0u; tap_x < TAPS_X; tap_x++) {
            let x = horizontal.first + tap_x * horizontal.every;
            let is_tap = y < KERNEL_Y && x < KERNEL_X;
            let channels = select(0u, params.channels, is_tap);
            let window = conv_window(pixels, vertical, horizontal, tap_y, tap_x);
            let element = base + y * KERNEL_X + x;
            var near = near_rows * row_step + element;
            var far = far_rows * row_step + element;
            for (var channel = 0u; channel < channels; channel++) {
                let values = conv_values(window, channel * plane);
                sum_0 += load_weight(near.x) * values;
                if (ROWS > 1u) {
                    sum_1 += load_weight(near.y) * values;
                }
                if (ROWS > 2u) {
                    sum_2 += load_weight(near.z) * values;
                    sum_3 += load_weight(near.w) * values;
                }
                if (ROWS > 4u) {
                    sum_4 += load_weight(far.x) * values;
                    sum_5 += load_weight(far.y) * values;
                    sum_6 += load_weight(far.z) * values;
                    sum_7 += load_weight(far.w) * values;
                }
                near += channel_step;
                far += channel_step;
            }
        }
    }
    // One store in a loop: it may become long, and texts with a copy of it for each value compile for
    // minutes on CPU adapters.
    var sums = array<vec4<f32>, 8>(sum_0, sum_1, sum_2, sum_3, sum_4, sum_5, sum_6, sum_7);
    for (var k = 0u; k < ROWS && row + k < params.rows; k++) {
        var values = sums[k];
        if (HAS_BIAS) {
            values += load_bias(group * params.rows + row + k);
        }
        var places = pixels.places + (row + k) * params.out_height * params.out_width;
        var inside = pixels.inside;
        for (var p = 0u; p < 4u; p++) {
            if (inside[p]) {
                store_out(places[p], values[p]);
            }
        }
    }
}
