// out[g, i, c, t] = sum(y[n, g, i, p] * x[n, g, c, p * stride + t * dilation - before] for n, p):
//   the derivative of a convolution by its weight; what lies outside of x is zero
//
// x     (batch, groups, channels, in_height, in_width)     contiguous
// y     (batch, groups, rows, out_height, out_width)       contiguous
// out   (parts, groups, rows, channels, KERNEL_Y, KERNEL_X)   part p sums from p * chunk to (p + 1)
//       * chunk of the depth: the pixels of y in all images
// grid  one workgroup per (part, group, tile of 8 * LANE_ROWS rows, tile of 64 columns); a column is
//       a channel and a tap; 128 lanes as 8 x 16, each with LANE_ROWS (2, 4 or 8) rows by 4 columns;
//       steps of 16 in depth through workgroup memory
//
// As conv/tiled.wgsl, with the pixels as the depth: a lane holds which channels and taps its columns
// are, and at each step which pixel it fetches.

const LANE_ROWS = 8u;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;

const WORKGROUP = 128u;
const STEP = 16u;
const TILE_ROWS = 8u * LANE_ROWS;
const TILE_COLUMNS = 64u;
const PITCH = 17u;
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
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> x_tile: array<vec4<f32>, STEP * PITCH>;
var<workgroup> y_tile: array<vec4<f32>, STEP * PITCH>;

// Four columns 16 apart: where their channels begin in an image of a group, and what their taps add
// to a place in it.
struct Columns {
    channels: vec4<u32>,
    down: vec4<u32>,
    right: vec4<u32>,
}

fn columns_at(column: u32) -> Columns {
    let columns = vec4<u32>(column) + vec4<u32>(0u, 16u, 32u, 48u);
    let tap = columns % KERNEL;
    // columns past the last one repeat it and are not stored
    let channel = min(columns / KERNEL, vec4<u32>(params.channels - 1u));
    return Columns(
        channel * (params.in_height * params.in_width),
        tap / KERNEL_X * params.vertical.y - params.vertical.z,
        tap % KERNEL_X * params.horizontal.y - params.horizontal.z,
    );
}

// What four columns meet at a pixel of y: image and group, row, column.
fn column_quad(columns: Columns, image: u32, row: u32, column: u32) -> vec4<f32> {
    let ys = row * params.vertical.x + columns.down;
    let xs = column * params.horizontal.x + columns.right;
    let inside = (ys < vec4<u32>(params.in_height)) & (xs < vec4<u32>(params.in_width));
    let base = image * params.channels * params.in_height * params.in_width;
    let places = select(vec4<u32>(), base + columns.channels + ys * params.in_width + xs, inside);
    let values = vec4<f32>(load_x(places.x), load_x(places.y), load_x(places.z),
        load_x(places.w));
    return select(vec4<f32>(), values, inside);
}

// Four rows of y at a pixel; rows past the last one repeat it and are not stored.
fn row_quad(image: u32, row: u32, pixel: u32) -> vec4<f32> {
    let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    let plane = params.out_height * params.out_width;
    let places = rows * plane + (image * params.rows * plane + pixel);
    return vec4<f32>(load_y(places.x), load_y(places.y), load_y(places.z), load_y(places.w));
}

// What a lane fetches at one place of the depth; zero from the end of the part.
struct Quads {
    x_0: vec4<f32>,
    x_1: vec4<f32>,
    y_0: vec4<f32>,
    y_1: vec4<f32>,
}

fn quads_at(
    near: Columns, far: Columns, group: u32, row: u32, fetches_rows: bool, k: u32, end: u32,
) -> Quads {
    var quads = Quads(vec4<f32>(), vec4<f32>(), vec4<f32>(), vec4<f32>());
    if (k >= end) {
        return quads;
    }
    let plane = params.out_height * params.out_width;
    let image = k / plane * params.groups + group;
    let pixel = k % plane;
    let pixel_row = pixel / params.out_width;
    let pixel_column = pixel % params.out_width;
    quads.x_0 = column_quad(near, image, pixel_row, pixel_column);
    quads.x_1 = column_quad(far, image, pixel_row, pixel_column);
    if (fetches_rows) {
        quads.y_0 = row_quad(image, row, pixel);
    }
    if (LANE_ROWS > 4u) {
        quads.y_1 = row_quad(image, row + 32u, pixel);
    }
    return quads;
}

// Columns column, column + 16, + 32 and + 48 of one row.
fn store_row(part: u32, group: u32, row: u32, column: u32, sums: vec4<f32>) {
    if (row >= params.rows) {
        return;
    }
    let columns = params.channels * KERNEL;
    let place = part + (group * params.rows + row) * columns + column;
    if (column < columns) { store_out(place, sums.x); }
    if (column + 16u < columns) { store_out(place + 16u, sums.y); }
    if (column + 32u < columns) { store_out(place + 32u, sums.z); }
    if (column + 48u < columns) { store_out(place + 48u, sums.w); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let number = id.y * count.x + id.x;
    if (number >= params.workgroups) {
        return;
    }
    let column_tiles = (params.channels * KERNEL + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    let row_tiles = (params.rows + TILE_ROWS - 1u) / TILE_ROWS;
    let first_column = number % column_tiles * TILE_COLUMNS;
    let first_row = number / column_tiles % row_tiles * TILE_ROWS;
    let rest = number / (column_tiles * row_tiles);
    let group = rest % params.groups;
    let begin = rest / params.groups * params.chunk;
    let end = min(begin + params.chunk, params.depth);

    let lane_row = lane / 16u;
    let lane_column = lane % 16u;
    // what this lane fetches at lane_column in depth: quads lane_row and lane_row + 8 of both tiles
    let near = columns_at(first_column + lane_row);
    let far = columns_at(first_column + lane_row + 8u);
    let fetches_rows = 4u * lane_row < TILE_ROWS;
    let row = first_row + 4u * lane_row;
    var next = quads_at(near, far, group, row, fetches_rows, begin + lane_column, end);
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var start = begin; start < end; start += STEP) {
        x_tile[lane_column * PITCH + lane_row] = next.x_0;
        x_tile[lane_column * PITCH + lane_row + 8u] = next.x_1;
        if (fetches_rows) {
            y_tile[lane_column * PITCH + lane_row] = next.y_0;
        }
        if (LANE_ROWS > 4u) {
            y_tile[lane_column * PITCH + lane_row + 8u] = next.y_1;
        }
        workgroupBarrier();
        if (start + STEP < end) {
            let k = start + STEP + lane_column;
            next = quads_at(near, far, group, row, fetches_rows, k, end);
        }
        for (var k = 0u; k < STEP; k++) {
            let quad = x_tile[k * PITCH + lane_column];
            if (LANE_ROWS == 2u) {
                let rows = y_tile[k * PITCH + lane_row / 2u];
                let pair = select(rows.xy, rows.zw, lane_row % 2u == 1u);
                sum_0 = fma(vec4<f32>(pair.x), quad, sum_0);
                sum_1 = fma(vec4<f32>(pair.y), quad, sum_1);
            } else {
                let rows = y_tile[k * PITCH + lane_row];
                sum_0 = fma(vec4<f32>(rows.x), quad, sum_0);
                sum_1 = fma(vec4<f32>(rows.y), quad, sum_1);
                sum_2 = fma(vec4<f32>(rows.z), quad, sum_2);
                sum_3 = fma(vec4<f32>(rows.w), quad, sum_3);
            }
            if (LANE_ROWS > 4u) {
                let rows = y_tile[k * PITCH + lane_row + 8u];
                sum_4 = fma(vec4<f32>(rows.x), quad, sum_4);
                sum_5 = fma(vec4<f32>(rows.y), quad, sum_5);
                sum_6 = fma(vec4<f32>(rows.z), quad, sum_6);
                sum_7 = fma(vec4<f32>(rows.w), quad, sum_7);
            }
        }
        workgroupBarrier();
    }

    let part = rest / params.groups * params.outputs;
    let column = first_column + lane_column;
    let out_row = first_row + lane_row * min(LANE_ROWS, 4u);
    store_row(part, group, out_row, column, sum_0);
    store_row(part, group, out_row + 1u, column, sum_1);
    if (LANE_ROWS > 2u) {
        store_row(part, group, out_row + 2u, column, sum_2);
        store_row(part, group, out_row + 3u, column, sum_3);
    }
    if (LANE_ROWS > 4u) {
        store_row(part, group, out_row + 32u, column, sum_4);
        store_row(part, group, out_row + 33u, column, sum_5);
        store_row(part, group, out_row + 34u, column, sum_6);
        store_row(part, group, out_row + 35u, column, sum_7);
    }
}
