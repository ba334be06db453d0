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
// grid    one workgroup per (part, phase, group, tile of TILE_PIXELS pixels, tile of TILE_ROWS rows)
// uses    conv_window
//
// A product of the weight with the matrix of all windows, which is never stored. The depth goes by
// in steps of STEP places. Both tiles of a step hold quads along the depth, with one quad of padding
// a row, so that neighbouring lanes meet no bank twice. A lane fetches what one pixel meets: where
// that lies is the pixel's place plus that of the tap, which the workgroup works out once a step.
// What the next step needs is asked for while a step computes.
//
// A lane adds up LANE_ROWS rows, ROW_LANES apart, of 4 pixels, PIXEL_LANES apart. SLICES groups of
// lanes share a step: each makes the whole tile over its own part of the step, and the sums are
// brought together in the end. That is for small tiles, which fill a device where large ones do not.
// The neighbour at lane ^ 1 shares the pixels and that at lane ^ 2 the row: NVIDIA's memory serves
// such pairs at once. Sums are named, not an array: an array indexed in a loop would live in memory.

// LANE_ROWS is 2, 4 or 8. TILE_PIXELS divides the workgroup, which has STEP lanes at least; a slice
// has at most 8 quads of a step, and a lane fetches at most 4 of each tile.
const TILE_ROWS = 32u;
const TILE_PIXELS = 32u;
const LANE_ROWS = 4u;
const STEP = 32u;
const SLICES = 2u;
const HAS_BIAS = false;
const TRANSPOSED = false;
const KERNEL_Y = 3u;
const KERNEL_X = 3u;
// Taps of a phase, at most.
const TAPS_Y = 3u;
const TAPS_X = 3u;
// Whether STEP does not divide the depth, or a phase may have fewer taps.
const EDGES = true;
// Whether anything lies outside of x or of the depth.
const PADDED = true;
// Whether a row of the weight has a multiple of 4 elements, and load4_weight reads four at once.
const W_FOUR = false;

const QUADS = STEP / 4u;
const STRIDE = QUADS + 1u;
const ROW_LANES = TILE_ROWS / LANE_ROWS;
const PIXEL_LANES = TILE_PIXELS / 4u;
const SLICE = ROW_LANES * PIXEL_LANES;
const WORKGROUP = SLICE * SLICES;
const SLICE_QUADS = QUADS / SLICES;
const X_QUADS = TILE_PIXELS * QUADS;
const W_QUADS = TILE_ROWS * QUADS;
// The tile of the weight lies behind that of x, and the taps behind both.
const W_TILE = TILE_PIXELS * STRIDE;
const TAPS_TILE = W_TILE + TILE_ROWS * STRIDE;
const FOURS = TILE_ROWS * PIXEL_LANES;
const GATHERED = min(SLICES - 1u, 1u) * SLICES * FOURS;
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

// The tiles and the taps of a step; in their place, in the end, the sums. Floats by their bits.
var<workgroup> held: array<vec4<u32>, max(TAPS_TILE + STEP, GATHERED)>;

fn quad_at(i: u32) -> vec4<f32> { return bitcast<vec4<f32>>(held[i]); }
fn put_quad(i: u32, quad: vec4<f32>) { held[i] = bitcast<vec4<u32>>(quad); }

// A lane's sums; those past LANE_ROWS are unused.
struct Sums {
    row_0: vec4<f32>,
    row_1: vec4<f32>,
    row_2: vec4<f32>,
    row_3: vec4<f32>,
    row_4: vec4<f32>,
    row_5: vec4<f32>,
    row_6: vec4<f32>,
    row_7: vec4<f32>,
}

// What a lane brings into the tiles for a step.
struct Share {
    x_0: vec4<f32>,
    x_1: vec4<f32>,
    x_2: vec4<f32>,
    x_3: vec4<f32>,
    w_0: vec4<f32>,
    w_1: vec4<f32>,
    w_2: vec4<f32>,
    w_3: vec4<f32>,
}

// What a lane fetches from: the pixel's place with tap 0 in channel 0, and its coordinates; the
// group's weight and the tile's first row.
struct Origin {
    place: u32,
    y: u32,
    x: u32,
    weight: u32,
    row: u32,
}

// Where a lane's sums stand.
struct Place {
    slice: u32,
    row: u32,
    column: u32,
}

fn place_of(thread: u32) -> Place {
    let lane = thread % SLICE;
    return Place(thread / SLICE, lane / (2u * PIXEL_LANES) * 2u + lane % 2u,
        lane / 2u % PIXEL_LANES);
}

// Place k of the depth: what it adds to a pixel's place in x, to its y and its x, and where its
// weight lies with TRANSPOSED; nowhere past the end, and where a phase has no such tap.
fn tap_at(k: u32, end: u32, vertical: ConvAxis, horizontal: ConvAxis) -> vec4<u32> {
    let channel = k / TAPS;
    let tap_y = k % TAPS / TAPS_X;
    let tap_x = k % TAPS_X;
    let y = vertical.first + tap_y * vertical.every;
    let x = horizontal.first + tap_x * horizontal.every;
    if (EDGES && (k >= end || y >= KERNEL_Y || x >= KERNEL_X)) {
        return vec4<u32>(0u, 0u, CONV_NOWHERE, CONV_NOWHERE);
    }
    let down = tap_y * vertical.reach;
    let right = tap_x * horizontal.reach;
    return vec4<u32>((channel * params.in_height + down) * params.in_width + right, down, right,
        channel * params.rows * KERNEL + y * KERNEL_X + x);
}

fn put_tap(thread: u32, tap: vec4<u32>) {
    if (thread < STEP) {
        held[TAPS_TILE + thread] = tap;
    }
}

// What the lane's pixel meets at place k of the step.
fn x_value(origin: Origin, k: u32) -> f32 {
    let tap = held[TAPS_TILE + k];
    let place = origin.place + tap.x;
    if (!PADDED) {
        return load_x(place);
    }
    let inside = origin.y + tap.y < params.in_height && origin.x + tap.z < params.in_width;
    return select(0.0, load_x(select(0u, place, inside)), inside);
}

// Quad i of the tile of x.
fn x_share(origin: Origin, i: u32) -> vec4<f32> {
    if (i >= X_QUADS) {
        return vec4<f32>();
    }
    let k = i / TILE_PIXELS * 4u;
    return vec4<f32>(x_value(origin, k), x_value(origin, k + 1u), x_value(origin, k + 2u),
        x_value(origin, k + 3u));
}

// The weight of a row of the group at place k of the step that begins at `first`.
fn w_value(origin: Origin, row: u32, first: u32, k: u32, end: u32) -> f32 {
    if (TRANSPOSED) {
        let place = held[TAPS_TILE + k].w;
        let inside = place != CONV_NOWHERE;
        let value = load_weight(origin.weight + row * KERNEL + select(0u, place, inside));
        return select(0.0, value, inside);
    }
    if (EDGES && first + k >= end) {
        return 0.0;
    }
    return load_weight(origin.weight + row * params.channels * KERNEL + first + k);
}

// Quad i of the tile of the weight; rows past the last repeat it and are not stored.
fn w_share(origin: Origin, i: u32, first: u32, end: u32) -> vec4<f32> {
    if (i >= W_QUADS) {
        return vec4<f32>();
    }
    // neighbouring lanes fetch neighbours in memory
    let row = min(origin.row + select(i / QUADS, i % TILE_ROWS, TRANSPOSED), params.rows - 1u);
    let k = 4u * select(i % QUADS, i / TILE_ROWS, TRANSPOSED);
    if (W_FOUR && params.weight_offset % 4u == 0u) {
        if (EDGES && first + k >= end) {
            return vec4<f32>();
        }
        return load4_weight((origin.weight + row * params.channels * KERNEL + first + k) / 4u);
    }
    return vec4<f32>(w_value(origin, row, first, k, end), w_value(origin, row, first, k + 1u, end),
        w_value(origin, row, first, k + 2u, end), w_value(origin, row, first, k + 3u, end));
}

fn load_share(origin: Origin, thread: u32, first: u32, end: u32) -> Share {
    var share = Share();
    share.x_0 = x_share(origin, thread);
    if (X_QUADS > WORKGROUP) {
        share.x_1 = x_share(origin, thread + WORKGROUP);
    }
    if (X_QUADS > 2u * WORKGROUP) {
        share.x_2 = x_share(origin, thread + 2u * WORKGROUP);
        share.x_3 = x_share(origin, thread + 3u * WORKGROUP);
    }
    share.w_0 = w_share(origin, thread, first, end);
    if (W_QUADS > WORKGROUP) {
        share.w_1 = w_share(origin, thread + WORKGROUP, first, end);
    }
    if (W_QUADS > 2u * WORKGROUP) {
        share.w_2 = w_share(origin, thread + 2u * WORKGROUP, first, end);
        share.w_3 = w_share(origin, thread + 3u * WORKGROUP, first, end);
    }
    return share;
}

fn put_x(i: u32, quad: vec4<f32>) {
    if (i < X_QUADS) {
        put_quad(i % TILE_PIXELS * STRIDE + i / TILE_PIXELS, quad);
    }
}

fn put_w(i: u32, quad: vec4<f32>) {
    if (i < W_QUADS) {
        let row = select(i / QUADS, i % TILE_ROWS, TRANSPOSED);
        put_quad(W_TILE + row * STRIDE + select(i % QUADS, i / TILE_ROWS, TRANSPOSED), quad);
    }
}

fn put_share(thread: u32, share: Share) {
    put_x(thread, share.x_0);
    if (X_QUADS > WORKGROUP) {
        put_x(thread + WORKGROUP, share.x_1);
    }
    if (X_QUADS > 2u * WORKGROUP) {
        put_x(thread + 2u * WORKGROUP, share.x_2);
        put_x(thread + 3u * WORKGROUP, share.x_3);
    }
    put_w(thread, share.w_0);
    if (W_QUADS > WORKGROUP) {
        put_w(thread + WORKGROUP, share.w_1);
    }
    if (W_QUADS > 2u * WORKGROUP) {
        put_w(thread + 2u * WORKGROUP, share.w_2);
        put_w(thread + 3u * WORKGROUP, share.w_3);
    }
}

// sum + the products of a quad of the weight, along the depth, with those of four pixels.
fn add_quad(sum: vec4<f32>, w: vec4<f32>, x: mat4x4<f32>) -> vec4<f32> {
    let first = fma(vec4<f32>(w.y), x[1], fma(vec4<f32>(w.x), x[0], sum));
    return fma(vec4<f32>(w.w), x[3], fma(vec4<f32>(w.z), x[2], first));
}

// sums + what quad k of the slice adds.
fn add_places(sums: Sums, place: Place, k: u32) -> Sums {
    let quad = place.slice * SLICE_QUADS + k;
    let at_x = place.column * STRIDE + quad;
    let at_w = W_TILE + place.row * STRIDE + quad;
    let x = transpose(mat4x4<f32>(quad_at(at_x), quad_at(at_x + PIXEL_LANES * STRIDE),
        quad_at(at_x + 2u * PIXEL_LANES * STRIDE), quad_at(at_x + 3u * PIXEL_LANES * STRIDE)));
    var added = sums;
    added.row_0 = add_quad(sums.row_0, quad_at(at_w), x);
    added.row_1 = add_quad(sums.row_1, quad_at(at_w + ROW_LANES * STRIDE), x);
    if (LANE_ROWS > 2u) {
        added.row_2 = add_quad(sums.row_2, quad_at(at_w + 2u * ROW_LANES * STRIDE), x);
        added.row_3 = add_quad(sums.row_3, quad_at(at_w + 3u * ROW_LANES * STRIDE), x);
    }
    if (LANE_ROWS > 4u) {
        added.row_4 = add_quad(sums.row_4, quad_at(at_w + 4u * ROW_LANES * STRIDE), x);
        added.row_5 = add_quad(sums.row_5, quad_at(at_w + 5u * ROW_LANES * STRIDE), x);
        added.row_6 = add_quad(sums.row_6, quad_at(at_w + 6u * ROW_LANES * STRIDE), x);
        added.row_7 = add_quad(sums.row_7, quad_at(at_w + 7u * ROW_LANES * STRIDE), x);
    }
    return added;
}

fn add_step(sums: Sums, place: Place) -> Sums {
    var added = add_places(sums, place, 0u);
    if (SLICE_QUADS > 1u) {
        added = add_places(added, place, 1u);
    }
    if (SLICE_QUADS > 2u) {
        added = add_places(added, place, 2u);
    }
    if (SLICE_QUADS > 3u) {
        added = add_places(added, place, 3u);
    }
    if (SLICE_QUADS > 4u) {
        added = add_places(added, place, 4u);
        added = add_places(added, place, 5u);
        added = add_places(added, place, 6u);
        added = add_places(added, place, 7u);
    }
    return added;
}

// Where stored values go: the part of out, the group, the tile's first row, the four pixels.
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

fn store_or_put(to: Target, place: Place, k: u32, sums: vec4<f32>) {
    let row = place.row + k * ROW_LANES;
    if (SLICES == 1u) {
        store_four(to, row, sums);
    } else {
        put_quad(place.slice * FOURS + row * PIXEL_LANES + place.column, sums);
    }
}

// Row `at / PIXEL_LANES` of the sums of all slices.
fn gathered(at: u32) -> vec4<f32> {
    var sum = quad_at(at);
    for (var slice = 1u; slice < SLICES; slice++) {
        sum += quad_at(slice * FOURS + at);
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
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

    // pixels past the last repeat it and are not stored
    let fetched = min(first_pixel + thread % TILE_PIXELS, params.pixels - 1u);
    let seen = conv_pixels(vec4<u32>(fetched), group, phase, vertical, horizontal);
    let origin = Origin(
        seen.bases.x + seen.ys.x * params.in_width + seen.xs.x, seen.ys.x, seen.xs.x,
        group * params.rows * params.channels * KERNEL, first_row,
    );
    put_tap(thread, tap_at(begin + thread, end, vertical, horizontal));
    workgroupBarrier();
    let share_0 = load_share(origin, thread, begin, end);
    let tap_1 = tap_at(begin + STEP + thread, end, vertical, horizontal);
    workgroupBarrier();
    put_share(thread, share_0);
    put_tap(thread, tap_1);
    workgroupBarrier();
    let place = place_of(thread);
    var sums = Sums();
    // Without a branch around it, what is fetched here has the length of a step to arrive.
    for (var next = begin + STEP; next < end; next += STEP) {
        let share = load_share(origin, thread, next, end);
        let tap = tap_at(next + STEP + thread, end, vertical, horizontal);
        sums = add_step(sums, place);
        workgroupBarrier();
        put_share(thread, share);
        put_tap(thread, tap);
        workgroupBarrier();
    }
    sums = add_step(sums, place);
    if (SLICES > 1u) {
        workgroupBarrier();
    }

    let column = select(thread % PIXEL_LANES, place.column, SLICES == 1u);
    let pixels = conv_pixels(
        vec4<u32>(first_pixel + column) + PIXEL_LANES * vec4<u32>(0u, 1u, 2u, 3u), group, phase,
        vertical, horizontal,
    );
    let to = Target(rest * params.outputs, group, first_row, pixels);
    store_or_put(to, place, 0u, sums.row_0);
    store_or_put(to, place, 1u, sums.row_1);
    if (LANE_ROWS > 2u) {
        store_or_put(to, place, 2u, sums.row_2);
        store_or_put(to, place, 3u, sums.row_3);
    }
    if (LANE_ROWS > 4u) {
        store_or_put(to, place, 4u, sums.row_4);
        store_or_put(to, place, 5u, sums.row_5);
        store_or_put(to, place, 6u, sums.row_6);
        store_or_put(to, place, 7u, sums.row_7);
    }
    if (SLICES > 1u) {
        workgroupBarrier();
        for (var at = thread; at < FOURS; at += WORKGROUP) {
            store_four(to, at / PIXEL_LANES, gathered(at));
        }
    }
}
