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
// grid    one workgroup per (part, phase, group, tile of TILE_COLUMNS pixels, of TILE_ROWS rows)
// fuses   -> out
// turns   chunk // STEP + 256
// uses    conv/tile, tile, conv_window
//
// A product of the weight with the matrix of all windows, whose columns are pixels, see conv/tile.
// A lane fetches what one pixel meets.

// TILE_COLUMNS divides the workgroup.
const TILE_ROWS = 32u;
const TILE_COLUMNS = 32u;
const LANE_ROWS = 4u;
const STEP = 32u;
const SLICES = 2u;
const COMPACT = false;
const HAS_BIAS = false;
const TRANSPOSED = false;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;
// Taps of a phase, at most.
const TAPS_Y = 3u;
const TAPS_X = 3u;
// Whether STEP does not divide the depth, or a phase may have fewer taps.
const EDGES = true;
const PADDED = true;
// Whether a row of the weight has a multiple of 4 elements, and load4_weight reads four at once.
const W_FOUR = false;

const ROWS_BY_DEPTH = !TRANSPOSED;
const COLUMNS_BY_DEPTH = false;
const ACROSS = false;
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
fn load4_weight(i: u32) -> vec4<f32> { return vec4(load_weight(4*i), load_weight(4*i+1), load_weight(4*i+2), load_weight(4*i+3)); }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

// The place, y and x of the lane's pixel; the group's weight and the tile's first row.
struct Origin {
    column: vec3<u32>,
    weight: u32,
    row: u32,
    vertical: ConvAxis,
    horizontal: ConvAxis,
}

fn column_at(origin: Origin, column: u32) -> vec3<u32> { return origin.column; }

// The depth is channels times taps; a phase may have no such tap. The weight's places are those of
// TRANSPOSED.
fn depth_at(origin: Origin, k: u32, end: u32) -> vec4<u32> {
    let channel = k / TAPS;
    let tap_y = k % TAPS / TAPS_X;
    let tap_x = k % TAPS_X;
    let y = origin.vertical.first + tap_y * origin.vertical.every;
    let x = origin.horizontal.first + tap_x * origin.horizontal.every;
    if (EDGES && (k >= end || y >= KERNEL_Y || x >= KERNEL_X)) {
        return vec4<u32>(0u, vec3<u32>(OUTSIDE));
    }
    let down = tap_y * origin.vertical.reach;
    let right = tap_x * origin.horizontal.reach;
    return vec4<u32>((channel * params.in_height + down) * params.in_width + right, down, right,
        channel * params.rows * KERNEL + y * KERNEL_X + x);
}

// The weight of a row of the group at place k of the step.
fn row_value(origin: Origin, row: u32, first: u32, k: u32, end: u32) -> f32 {
    if (TRANSPOSED) {
        let place = held[step_at(k)].w;
        let inside = place != OUTSIDE;
        let value = load_weight(origin.weight + row * KERNEL + select(0u, place, inside));
        return select(0.0, value, inside);
    }
    if (EDGES && first + k >= end) {
        return 0.0;
    }
    return load_weight(origin.weight + row * params.channels * KERNEL + first + k);
}

// Rows past the last repeat it and are not stored.
fn row_quad(origin: Origin, tile_row: u32, first: u32, k: u32, end: u32) -> vec4<f32> {
    let row = min(origin.row + tile_row, params.rows - 1u);
    if (W_FOUR && params.weight_offset % 4u == 0u) {
        if (EDGES && first + k >= end) {
            return vec4<f32>();
        }
        return load4_weight((origin.weight + row * params.channels * KERNEL + first + k) / 4u);
    }
    return vec4<f32>(
        row_value(origin, row, first, k, end), row_value(origin, row, first, k + 1u, end),
        row_value(origin, row, first, k + 2u, end), row_value(origin, row, first, k + 3u, end),
    );
}

// The part of out, the group, the tile's first row, the four pixels.
struct Target {
    part: u32,
    group: u32,
    first_row: u32,
    pixels: ConvPixels,
}

// One row of the tile, four pixels.
fn store_four(to: Target, tile_row: u32, sums: vec4<f32>) {
    let row = to.first_row + tile_row;
    if (row >= params.rows) {
        return;
    }
    var values = sums;
    if (HAS_BIAS) {
        values += load_bias(to.group * params.rows + row);
    }
    let places = to.pixels.places + (to.part + row * params.out_height * params.out_width);
    if (to.pixels.inside.x) { store_out(places.x, values.x); }
    if (to.pixels.inside.y) { store_out(places.y, values.y); }
    if (to.pixels.inside.z) { store_out(places.z, values.z); }
    if (to.pixels.inside.w) { store_out(places.w, values.w); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let number = id.y * count.x + id.x;
    if (number >= params.workgroups) {
        return;
    }
    let row_tiles = (params.rows + TILE_ROWS - 1u) / TILE_ROWS;
    let pixel_tiles = (params.pixels + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    let first_row = number % row_tiles * TILE_ROWS;
    let first_pixel = number / row_tiles % pixel_tiles * TILE_COLUMNS;
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

    // pixels past the last repeat it and are not stored
    let fetched = min(first_pixel + thread % TILE_COLUMNS, params.pixels - 1u);
    let seen = conv_pixels(vec4<u32>(fetched), group, phase, vertical, horizontal);
    let origin = Origin(
        vec3<u32>(seen.bases.x + seen.ys.x * params.in_width + seen.xs.x, seen.ys.x, seen.xs.x),
        group * params.rows * params.channels * KERNEL, first_row, vertical, horizontal,
    );
    let sums = multiply(origin, thread, begin, end);

    let pixels = conv_pixels(
        first_pixel + tile_column(thread) + COLUMN_LANES * vec4<u32>(0u, 1u, 2u, 3u), group, phase,
        vertical, horizontal,
    );
    let to = Target(rest * params.outputs, group, first_row, pixels);
    tile_store(to, thread, sums);
}
