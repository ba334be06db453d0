// out[n, g, i, p] = bias[g, i] + sum(weight[g, i, c, e(t)] * x[n, g, c, place(p, t)] for c, t)
//   over the taps t of a window; what lies outside of x is zero. With TRANSPOSED weight[g, c, i,
//   e(t)]: the transpose of a convolution, which is also its derivative.
//
// x       (batch, groups, channels, in_height, in_width)    contiguous
// weight  (groups, rows, channels, KERNEL_Y, KERNEL_X)      contiguous; with TRANSPOSED
//         (groups, channels, rows, KERNEL_Y, KERNEL_X)
// bias    (groups, rows)                                    read only with HAS_BIAS
// out     (parts, batch, groups, rows, out_height, out_width)   part p sums from p * chunk to (p +
//         1) * chunk of the depth, which is channels * TAPS_Y * TAPS_X
// grid    one workgroup per (part, phase, group, tile of 64 pixels, tile of 8 * LANE_ROWS rows);
//         128 lanes as 8 x 16, each with LANE_ROWS (2, 4 or 8) rows by 4 pixels; steps of 16 in
//         depth through workgroup memory
// uses    conv_window
//
// A product of the weight with the matrix of all windows, which is never stored: a lane holds where
// its 4 pixels lie and fetches what a tap meets. Tiles hold quads of 4 pixels (16 apart) and quads of
// 4 rows, padded against bank conflicts; the next step's quads are fetched into registers while this
// step computes. Sums are named, not an array: an array indexed in a loop would live in memory.

const LANE_ROWS = 8u;
const HAS_BIAS = false;
const TRANSPOSED = false;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;
// Taps of a phase, at most.
const TAPS_Y = 3u;
const TAPS_X = 3u;

const WORKGROUP = 128u;
const STEP = 16u;
const TILE_ROWS = 8u * LANE_ROWS;
const TILE_PIXELS = 64u;
const PITCH = 17u;
const KERNEL = KERNEL_Y * KERNEL_X;
const TAPS = TAPS_Y * TAPS_X;

struct Params {
    x_offset: u32,
    weight_offset: u32,
    bias_offset: u32,
    workgroups: u32,
    outputs: u32,
    chunk: u32,
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

var<workgroup> x_tile: array<vec4<f32>, STEP * 16u>;
var<workgroup> w_tile: array<vec4<f32>, STEP * PITCH>;

// What four pixels meet at place k of the depth; zero from `end`.
fn pixel_quad(
    pixels: ConvPixels, vertical: ConvAxis, horizontal: ConvAxis, k: u32, end: u32,
) -> vec4<f32> {
    if (k >= end) {
        return vec4<f32>();
    }
    let tap = k % TAPS;
    let window = conv_window(pixels, vertical, horizontal, tap / TAPS_X, tap % TAPS_X);
    return conv_values(window, k / TAPS * (params.in_height * params.in_width));
}

// Four rows of the weight at place k of the depth; zero from `end`. Rows past the last repeat it and
// are not stored.
fn weight_quad(
    group: u32, row: u32, vertical: ConvAxis, horizontal: ConvAxis, k: u32, end: u32,
) -> vec4<f32> {
    let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    var at = k;
    var row_step = params.channels * KERNEL;
    var is_inside = k < end;
    if (TRANSPOSED) {
        let tap = k % TAPS;
        let y = vertical.first + tap / TAPS_X * vertical.every;
        let x = horizontal.first + tap % TAPS_X * horizontal.every;
        is_inside = is_inside && y < KERNEL_Y && x < KERNEL_X;
        at = k / TAPS * params.rows * KERNEL + y * KERNEL_X + x;
        row_step = KERNEL;
    }
    if (!is_inside) {
        return vec4<f32>();
    }
    let places = rows * row_step + (group * params.rows * params.channels * KERNEL + at);
    return vec4<f32>(load_weight(places.x), load_weight(places.y), load_weight(places.z),
        load_weight(places.w));
}

// One row of the four pixels that begin at `places`; `part` is where this part of out begins.
fn store_row(part: u32, group: u32, row: u32, pixels: ConvPixels, sums: vec4<f32>) {
    if (row >= params.rows) {
        return;
    }
    var values = sums;
    if (HAS_BIAS) {
        values += load_bias(group * params.rows + row);
    }
    let places = pixels.places + (part + row * params.out_height * params.out_width);
    if (pixels.inside.x) { store_out(places.x, values.x); }
    if (pixels.inside.y) { store_out(places.y, values.y); }
    if (pixels.inside.z) { store_out(places.z, values.z); }
    if (pixels.inside.w) { store_out(places.w, values.w); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let number = id.y * count.x + id.x;
    if (number >= params.workgroups) {
        return;
    }
    let row_tiles = (params.rows + TILE_ROWS - 1u) / TILE_ROWS;
    let pixel_tiles = (params.pixels + TILE_PIXELS - 1u) / TILE_PIXELS;
    let first_row = number % row_tiles * TILE_ROWS;
    let first_pixel = number / row_tiles % pixel_tiles * TILE_PIXELS;
    var rest = number / (row_tiles * pixel_tiles);
    let group = rest % params.groups;
    rest /= params.groups;
    var phase = vec2<u32>();
    if (TRANSPOSED) {
        phase.x = rest % params.horizontal.x;
        rest /= params.horizontal.x;
        phase.y = rest % params.vertical.x;
        rest /= params.vertical.x;
    }
    let vertical = conv_axis(params.vertical, KERNEL_Y, phase.y);
    let horizontal = conv_axis(params.horizontal, KERNEL_X, phase.x);
    let begin = rest * params.chunk;
    let end = min(begin + params.chunk, params.channels * TAPS);

    let lane_row = lane / 16u;
    let lane_column = lane % 16u;
    let pixels = conv_pixels(
        vec4<u32>(first_pixel + lane_column) + vec4<u32>(0u, 16u, 32u, 48u), group, phase, vertical,
        horizontal,
    );
    // what this lane fetches: its pixels at lane_row and 8 further in depth, and of the weight, at
    // lane_column in depth, rows 4 * lane_row to + 3, and 32 further
    let fetches_weight = 4u * lane_row < TILE_ROWS;
    let w_row = first_row + 4u * lane_row;
    var next_x_0 = pixel_quad(pixels, vertical, horizontal, begin + lane_row, end);
    var next_x_1 = pixel_quad(pixels, vertical, horizontal, begin + lane_row + 8u, end);
    var next_w_0 = vec4<f32>();
    var next_w_1 = vec4<f32>();
    if (fetches_weight) {
        next_w_0 = weight_quad(group, w_row, vertical, horizontal, begin + lane_column, end);
    }
    if (LANE_ROWS > 4u) {
        next_w_1 = weight_quad(group, w_row + 32u, vertical, horizontal, begin + lane_column, end);
    }
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var start = begin; start < end; start += STEP) {
        x_tile[lane_row * 16u + lane_column] = next_x_0;
        x_tile[(lane_row + 8u) * 16u + lane_column] = next_x_1;
        if (fetches_weight) {
            w_tile[lane_column * PITCH + lane_row] = next_w_0;
        }
        if (LANE_ROWS > 4u) {
            w_tile[lane_column * PITCH + lane_row + 8u] = next_w_1;
        }
        workgroupBarrier();
        let next = start + STEP;
        if (next < end) {
            next_x_0 = pixel_quad(pixels, vertical, horizontal, next + lane_row, end);
            next_x_1 = pixel_quad(pixels, vertical, horizontal, next + lane_row + 8u, end);
            let k = next + lane_column;
            if (fetches_weight) {
                next_w_0 = weight_quad(group, w_row, vertical, horizontal, k, end);
            }
            if (LANE_ROWS > 4u) {
                next_w_1 = weight_quad(group, w_row + 32u, vertical, horizontal, k, end);
            }
        }
        for (var k = 0u; k < STEP; k++) {
            let quad = x_tile[k * 16u + lane_column];
            if (LANE_ROWS == 2u) {
                let rows = w_tile[k * PITCH + lane_row / 2u];
                let pair = select(rows.xy, rows.zw, lane_row % 2u == 1u);
                sum_0 = fma(vec4<f32>(pair.x), quad, sum_0);
                sum_1 = fma(vec4<f32>(pair.y), quad, sum_1);
            } else {
                let rows = w_tile[k * PITCH + lane_row];
                sum_0 = fma(vec4<f32>(rows.x), quad, sum_0);
                sum_1 = fma(vec4<f32>(rows.y), quad, sum_1);
                sum_2 = fma(vec4<f32>(rows.z), quad, sum_2);
                sum_3 = fma(vec4<f32>(rows.w), quad, sum_3);
            }
            if (LANE_ROWS > 4u) {
                let rows = w_tile[k * PITCH + lane_row + 8u];
                sum_4 = fma(vec4<f32>(rows.x), quad, sum_4);
                sum_5 = fma(vec4<f32>(rows.y), quad, sum_5);
                sum_6 = fma(vec4<f32>(rows.z), quad, sum_6);
                sum_7 = fma(vec4<f32>(rows.w), quad, sum_7);
            }
        }
        workgroupBarrier();
    }

    let part = rest * params.outputs;
    let row = first_row + lane_row * min(LANE_ROWS, 4u);
    store_row(part, group, row, pixels, sum_0);
    store_row(part, group, row + 1u, pixels, sum_1);
    if (LANE_ROWS > 2u) {
        store_row(part, group, row + 2u, pixels, sum_2);
        store_row(part, group, row + 3u, pixels, sum_3);
    }
    if (LANE_ROWS > 4u) {
        store_row(part, group, row + 32u, pixels, sum_4);
        store_row(part, group, row + 33u, pixels, sum_5);
        store_row(part, group, row + 34u, pixels, sum_6);
        store_row(part, group, row + 35u, pixels, sum_7);
    }
}
