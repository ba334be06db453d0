// out[g, i, c, t] = sum(y[n, g, i, p] * x[n, g, c, p * stride + t * dilation - before] for n, p):
//   the derivative of a convolution by its weight; what lies outside of x is zero
//
// x     (batch, groups, channels, in_height, in_width)     contiguous
// y     (batch, groups, rows, out_height, out_width)       contiguous
// out   (parts, groups, rows, channels, KERNEL_Y, KERNEL_X)   part p sums from p * chunk to (p + 1)
//       * chunk of the depth: the pixels of y in all images
// grid  one workgroup per (part, group, tile of TILE_ROWS rows, tile of TILE_COLUMNS columns); a
//       column is a channel and a tap
// turns chunk // STEP + 256
// uses  conv/tile, tile
//
// A product of y with what its pixels meet, see conv/tile.

const TILE_ROWS = 32u;
const TILE_COLUMNS = 32u;
const LANE_ROWS = 4u;
const STEP = 32u;
const SLICES = 2u;
const COMPACT = false;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;
// Whether STEP does not divide the depth.
const EDGES = true;
const PADDED = true;
// Whether a plane of y has a multiple of 4 elements, and load4_y reads four at once.
const Y_FOUR = false;

const ROWS_BY_DEPTH = true;
const COLUMNS_BY_DEPTH = true;
const ACROSS = false;
const KERNEL = KERNEL_Y * KERNEL_X;

struct Params {
    x_offset: u32,
    y_offset: u32,
    workgroups: u32,
    outputs: u32,
    chunk: u32,
    groups: u32,
    rows: u32,
    channels: u32,
    depth: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    // by axis: stride, dilation, padding before
    vertical: vec4<u32>,
    horizontal: vec4<u32>,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_y(i: u32) -> f32 { return y[params.y_offset + i]; }
fn load4_y(i: u32) -> vec4<f32> { return vec4(load_y(4*i), load_y(4*i+1), load_y(4*i+2), load_y(4*i+3)); }
fn store_out(i: u32, value: f32) { out[i] = value; }

// The tile's first row and column; where the group lies in an image of x and of y.
struct Origin {
    row: u32,
    column: u32,
    x: u32,
    y: u32,
}

// Columns past the last one repeat a channel and are not stored.
fn column_at(origin: Origin, tile_column: u32) -> vec3<u32> {
    let column = origin.column + tile_column;
    let channel = min(column / KERNEL, params.channels - 1u);
    let tap = column % KERNEL;
    let down = tap / KERNEL_X * params.vertical.y - params.vertical.z;
    let right = tap % KERNEL_X * params.horizontal.y - params.horizontal.z;
    let line = channel * params.in_height + down;
    return vec3<u32>(origin.x + line * params.in_width + right, down, right);
}

fn depth_at(origin: Origin, k: u32, end: u32) -> vec4<u32> {
    if (EDGES && k >= end) {
        return vec4<u32>(0u, vec3<u32>(OUTSIDE));
    }
    let plane = params.out_height * params.out_width;
    let pixel = k % plane;
    let image = k / plane * params.groups;
    let y = pixel / params.out_width * params.vertical.x;
    let x = pixel % params.out_width * params.horizontal.x;
    let line = image * params.channels * params.in_height + y;
    return vec4<u32>(line * params.in_width + x, y, x, image * params.rows * plane + pixel);
}

fn row_value(row: u32, k: u32) -> f32 {
    let place = held[step_at(k)].w;
    let inside = place != OUTSIDE;
    return select(0.0, load_y(row + select(0u, place, inside)), inside);
}

// Rows past the last repeat it and are not stored.
fn row_quad(origin: Origin, tile_row: u32, first: u32, k: u32, end: u32) -> vec4<f32> {
    let plane = params.out_height * params.out_width;
    let row = origin.y + min(origin.row + tile_row, params.rows - 1u) * plane;
    if (Y_FOUR && params.y_offset % 4u == 0u) {
        if (EDGES && first + k >= end) {
            return vec4<f32>();
        }
        return load4_y((row + held[step_at(k)].w) / 4u);
    }
    return vec4<f32>(row_value(row, k), row_value(row, k + 1u), row_value(row, k + 2u),
        row_value(row, k + 3u));
}

// The part and the group of out, the tile's first row, the lane's first column.
struct Target {
    place: u32,
    row: u32,
    column: u32,
}

// Four columns of one row of the tile.
fn store_four(to: Target, tile_row: u32, sums: vec4<f32>) {
    let row = to.row + tile_row;
    if (row >= params.rows) {
        return;
    }
    let columns = params.channels * KERNEL;
    let inside = to.column + COLUMN_LANES * vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(columns);
    let place = to.place + row * columns + to.column;
    if (inside.x) { store_out(place, sums.x); }
    if (inside.y) { store_out(place + COLUMN_LANES, sums.y); }
    if (inside.z) { store_out(place + 2u * COLUMN_LANES, sums.z); }
    if (inside.w) { store_out(place + 3u * COLUMN_LANES, sums.w); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
    let number = id.y * count.x + id.x;
    if (number >= params.workgroups) {
        return;
    }
    let columns = params.channels * KERNEL;
    let column_tiles = (columns + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    let row_tiles = (params.rows + TILE_ROWS - 1u) / TILE_ROWS;
    let first_column = number % column_tiles * TILE_COLUMNS;
    let first_row = number / column_tiles % row_tiles * TILE_ROWS;
    let rest = number / (column_tiles * row_tiles);
    let group = rest % params.groups;
    let part = rest / params.groups;
    let begin = part * params.chunk;
    let end = min(begin + params.chunk, params.depth);

    let origin = Origin(
        first_row, first_column, group * params.channels * params.in_height * params.in_width,
        group * params.rows * params.out_height * params.out_width,
    );
    let sums = multiply(origin, thread, begin, end);
    let place = part * params.outputs + group * params.rows * columns;
    tile_store(Target(place, first_row, first_column + tile_column(thread)), thread, sums);
}
