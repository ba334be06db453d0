// out[g, i, c, t] = sum(y[n, g, i, p] * x[n, g, c, p * stride + t * dilation - before] for n, p):
//   the derivative of a convolution by its weight, without workgroup memory; what lies outside of x
//   is zero
//
// For adapters that run on a CPU, where a barrier switches between all invocations of a workgroup.
// An invocation makes ROWS rows of 4 columns; a column is a channel and a tap.
//
// x     (batch, groups, channels, in_height, in_width)    contiguous
// y     (batch, groups, rows, out_height, out_width)      contiguous
// out   (groups, rows, channels, KERNEL_Y, KERNEL_X)
// grid  one invocation per (group, ROWS rows, 4 columns)
// turns (end_line - first_line) * (end_x - first_x + 1)

// 1, 2, 4 or 8.
const ROWS = 8u;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;

const WORKGROUP = 16u;
const KERNEL = KERNEL_Y * KERNEL_X;

struct Params {
    x_offset: u32,
    y_offset: u32,
    invocations: u32,
    // of all rows of pixels of y, in all images, and of the pixels in them: those that are added
    first_line: u32,
    end_line: u32,
    first_x: u32,
    end_x: u32,
    // where in out the sums go: there may be several parts of them
    out_start: u32,
    groups: u32,
    rows: u32,
    channels: u32,
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

fn store_row(group: u32, row: u32, column: u32, sums: vec4<f32>) {
    if (row >= params.rows) {
        return;
    }
    let columns = params.channels * KERNEL;
    let place = params.out_start + (group * params.rows + row) * columns + column;
    store_out(place, sums.x);
    if (column + 1u < columns) { store_out(place + 1u, sums.y); }
    if (column + 2u < columns) { store_out(place + 2u, sums.z); }
    if (column + 3u < columns) { store_out(place + 3u, sums.w); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let number = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (number >= params.invocations) {
        return;
    }
    let across = (params.channels * KERNEL + 3u) / 4u;
    let row_tiles = (params.rows + ROWS - 1u) / ROWS;
    let column = number % across * 4u;
    let row = number / across % row_tiles * ROWS;
    let group = number / (across * row_tiles);
    let columns = vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u);
    let tap = columns % KERNEL;
    // columns and rows past the last one repeat it and are not stored
    let channel = min(columns / KERNEL, vec4<u32>(params.channels - 1u));
    let near_rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    let far_rows = min(vec4<u32>(row) + vec4<u32>(4u, 5u, 6u, 7u), vec4<u32>(params.rows - 1u));
    let down = tap / KERNEL_X * params.vertical.y - params.vertical.z;
    let right = tap % KERNEL_X * params.horizontal.y - params.horizontal.z;
    let in_plane = params.in_height * params.in_width;
    let out_plane = params.out_height * params.out_width;

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var line = params.first_line; line < params.end_line; line++) {
        let block = line / params.out_height * params.groups + group;
        let y = line % params.out_height;
        let ys = y * params.vertical.x + down;
        let lines = (block * params.channels + channel) * in_plane + ys * params.in_width;
        let is_line = ys < vec4<u32>(params.in_height);
        let start = y * params.out_width + params.first_x;
        var near = (block * params.rows + near_rows) * out_plane + start;
        var far = (block * params.rows + far_rows) * out_plane + start;
        // Sums of a line are added to the others at its end: thousands of small numbers, one by one
        // to a large sum, would all be rounded the same way.
        var line_0 = vec4<f32>();
        var line_1 = vec4<f32>();
        var line_2 = vec4<f32>();
        var line_3 = vec4<f32>();
        var line_4 = vec4<f32>();
        var line_5 = vec4<f32>();
        var line_6 = vec4<f32>();
        var line_7 = vec4<f32>();
        for (var x = params.first_x; x < params.end_x; x++) {
            let xs = x * params.horizontal.x + right;
            let inside = is_line & (xs < vec4<u32>(params.in_width));
            let places = select(vec4<u32>(), lines + xs, inside);
            let loaded = vec4<f32>(load_x(places.x), load_x(places.y), load_x(places.z),
                load_x(places.w));
            let values = select(vec4<f32>(), loaded, inside);
            line_0 += load_y(near.x) * values;
            if (ROWS > 1u) {
                line_1 += load_y(near.y) * values;
            }
            if (ROWS > 2u) {
                line_2 += load_y(near.z) * values;
                line_3 += load_y(near.w) * values;
            }
            if (ROWS > 4u) {
                line_4 += load_y(far.x) * values;
                line_5 += load_y(far.y) * values;
                line_6 += load_y(far.z) * values;
                line_7 += load_y(far.w) * values;
            }
            near += vec4<u32>(1u);
            far += vec4<u32>(1u);
        }
        sum_0 += line_0;
        if (ROWS > 1u) {
            sum_1 += line_1;
        }
        if (ROWS > 2u) {
            sum_2 += line_2;
            sum_3 += line_3;
        }
        if (ROWS > 4u) {
            sum_4 += line_4;
            sum_5 += line_5;
            sum_6 += line_6;
            sum_7 += line_7;
        }
    }
    store_row(group, row, column, sum_0);
    if (ROWS > 1u) {
        store_row(group, row + 1u, column, sum_1);
    }
    if (ROWS > 2u) {
        store_row(group, row + 2u, column, sum_2);
        store_row(group, row + 3u, column, sum_3);
    }
    if (ROWS > 4u) {
        store_row(group, row + 4u, column, sum_4);
        store_row(group, row + 5u, column, sum_5);
        store_row(group, row + 6u, column, sum_6);
        store_row(group, row + 7u, column, sum_7);
    }
}
