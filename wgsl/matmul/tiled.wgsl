// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z %
//       batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, rows, columns)    contiguous
// grid  one workgroup per (batch, tile of 8 * LANE_ROWS rows, tile of 64 columns); 128 lanes as 8
//       x 16, each with LANE_ROWS (2, 4 or 8) rows by 4 columns; steps of 16 in depth through
//       workgroup memory
//
// Both tiles hold quads of 4 along the depth, padded by one quad a row against bank conflicts; the
// next step's quads are fetched into registers while this step computes. *_DEPTH_FIRST says that
// neighbouring lanes fetch neighbours in depth (the stride there is the small one); it changes
// speed, never the result. Sums are named, not an array: an array indexed in a loop would live in
// memory.

const LANE_ROWS = 8u;
const HAS_BIAS = false;
const A_DEPTH_FIRST = true;
const B_DEPTH_FIRST = false;

const WORKGROUP = 128u;
const TILE_ROWS = 8u * LANE_ROWS;
const TILE_COLUMNS = 64u;
const QUADS = 4u;
const PITCH = QUADS + 1u;

struct Params {
    a_offset: u32,
    b_offset: u32,
    bias_offset: u32,
    groups: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    batch_inner: u32,
    a_outer: u32,
    a_inner: u32,
    a_row: u32,
    a_depth: u32,
    b_outer: u32,
    b_inner: u32,
    b_depth: u32,
    b_column: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_a(i: u32) -> f32 { return a[params.a_offset + i]; }
fn load_b(i: u32) -> f32 { return b[params.b_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> a_tile: array<vec4<f32>, TILE_ROWS * PITCH>;
var<workgroup> b_tile: array<vec4<f32>, TILE_COLUMNS * PITCH>;

// Four neighbours along the depth of one row of a; zero outside.
fn quad_of_a(base: u32, row: u32, l: u32) -> vec4<f32> {
    if (row >= params.rows || l >= params.depth) {
        return vec4<f32>();
    }
    let at = base + row * params.a_row + l * params.a_depth;
    let step = params.a_depth;
    if (l + 4u <= params.depth) {
        return vec4<f32>(load_a(at), load_a(at + step), load_a(at + 2u * step),
            load_a(at + 3u * step));
    }
    var quad = vec4<f32>(load_a(at), 0.0, 0.0, 0.0);
    if (l + 1u < params.depth) { quad.y = load_a(at + step); }
    if (l + 2u < params.depth) { quad.z = load_a(at + 2u * step); }
    return quad;
}

// Four neighbours along the depth of one column of b; zero outside.
fn quad_of_b(base: u32, column: u32, l: u32) -> vec4<f32> {
    if (column >= params.columns || l >= params.depth) {
        return vec4<f32>();
    }
    let at = base + column * params.b_column + l * params.b_depth;
    let step = params.b_depth;
    if (l + 4u <= params.depth) {
        return vec4<f32>(load_b(at), load_b(at + step), load_b(at + 2u * step),
            load_b(at + 3u * step));
    }
    var quad = vec4<f32>(load_b(at), 0.0, 0.0, 0.0);
    if (l + 1u < params.depth) { quad.y = load_b(at + step); }
    if (l + 2u < params.depth) { quad.z = load_b(at + 2u * step); }
    return quad;
}

// sum + the products of a quad of a, along the depth, with four rows of four columns of b.
fn add_quad(
    sum: vec4<f32>, quad: vec4<f32>, b_0: vec4<f32>, b_1: vec4<f32>, b_2: vec4<f32>, b_3: vec4<f32>,
) -> vec4<f32> {
    let first = fma(vec4<f32>(quad.y), b_1, fma(vec4<f32>(quad.x), b_0, sum));
    return fma(vec4<f32>(quad.w), b_3, fma(vec4<f32>(quad.z), b_2, first));
}

fn store_value(place: u32, column: u32, sum: f32) {
    if (column < params.columns) {
        var value = sum;
        if (HAS_BIAS) {
            value += load_bias(column);
        }
        store_out(place + column, value);
    }
}

// Columns column, column + 16, + 32 and + 48 of one row.
fn store_row(batch: u32, row: u32, column: u32, sums: vec4<f32>) {
    if (row < params.rows) {
        let place = (batch * params.rows + row) * params.columns;
        store_value(place, column, sums.x);
        store_value(place, column + 16u, sums.y);
        store_value(place, column + 32u, sums.z);
        store_value(place, column + 48u, sums.w);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let column_tiles = (params.columns + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    let row_tiles = (params.rows + TILE_ROWS - 1u) / TILE_ROWS;
    let first_column = (group % column_tiles) * TILE_COLUMNS;
    let first_row = (group / column_tiles % row_tiles) * TILE_ROWS;
    let batch = group / (column_tiles * row_tiles);
    let outer = batch / params.batch_inner;
    let inner = batch % params.batch_inner;
    let a_base = outer * params.a_outer + inner * params.a_inner;
    let b_base = outer * params.b_outer + inner * params.b_inner;
    let lane_row = lane / 16u;
    let lane_column = lane % 16u;
    // what this lane fetches: a row (and the one 32 further) and a quad of each tile
    let a_row = select(lane % 32u, lane / QUADS, A_DEPTH_FIRST);
    let a_quad = select(lane / 32u, lane % QUADS, A_DEPTH_FIRST);
    let b_column = select(lane % 32u, lane / QUADS, B_DEPTH_FIRST);
    let b_quad = select(lane / 32u, lane % QUADS, B_DEPTH_FIRST);

    var next_a_0 = vec4<f32>();
    var next_a_1 = vec4<f32>();
    if (a_row < TILE_ROWS) {
        next_a_0 = quad_of_a(a_base, first_row + a_row, 4u * a_quad);
    }
    if (LANE_ROWS > 4u) {
        next_a_1 = quad_of_a(a_base, first_row + a_row + 32u, 4u * a_quad);
    }
    var next_b_0 = quad_of_b(b_base, first_column + b_column, 4u * b_quad);
    var next_b_1 = quad_of_b(b_base, first_column + b_column + 32u, 4u * b_quad);
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    for (var start = 0u; start < params.depth; start += 4u * QUADS) {
        if (a_row < TILE_ROWS) {
            a_tile[a_row * PITCH + a_quad] = next_a_0;
        }
        if (LANE_ROWS > 4u) {
            a_tile[(a_row + 32u) * PITCH + a_quad] = next_a_1;
        }
        b_tile[b_column * PITCH + b_quad] = next_b_0;
        b_tile[(b_column + 32u) * PITCH + b_quad] = next_b_1;
        workgroupBarrier();
        let next = start + 4u * QUADS;
        if (next < params.depth) {
            if (a_row < TILE_ROWS) {
                next_a_0 = quad_of_a(a_base, first_row + a_row, next + 4u * a_quad);
            }
            if (LANE_ROWS > 4u) {
                next_a_1 = quad_of_a(a_base, first_row + a_row + 32u, next + 4u * a_quad);
            }
            next_b_0 = quad_of_b(b_base, first_column + b_column, next + 4u * b_quad);
            next_b_1 = quad_of_b(b_base, first_column + b_column + 32u, next + 4u * b_quad);
        }
        for (var quad = 0u; quad < QUADS; quad++) {
            let at_b = lane_column * PITCH + quad;
            let at_a = lane_row * PITCH + quad;
            let c_0 = b_tile[at_b];
            let c_1 = b_tile[at_b + 16u * PITCH];
            let c_2 = b_tile[at_b + 32u * PITCH];
            let c_3 = b_tile[at_b + 48u * PITCH];
            let b_0 = vec4<f32>(c_0.x, c_1.x, c_2.x, c_3.x);
            let b_1 = vec4<f32>(c_0.y, c_1.y, c_2.y, c_3.y);
            let b_2 = vec4<f32>(c_0.z, c_1.z, c_2.z, c_3.z);
            let b_3 = vec4<f32>(c_0.w, c_1.w, c_2.w, c_3.w);
            sum_0 = add_quad(sum_0, a_tile[at_a], b_0, b_1, b_2, b_3);
            sum_1 = add_quad(sum_1, a_tile[at_a + 8u * PITCH], b_0, b_1, b_2, b_3);
            if (LANE_ROWS > 2u) {
                sum_2 = add_quad(sum_2, a_tile[at_a + 16u * PITCH], b_0, b_1, b_2, b_3);
                sum_3 = add_quad(sum_3, a_tile[at_a + 24u * PITCH], b_0, b_1, b_2, b_3);
            }
            if (LANE_ROWS > 4u) {
                sum_4 = add_quad(sum_4, a_tile[at_a + 32u * PITCH], b_0, b_1, b_2, b_3);
                sum_5 = add_quad(sum_5, a_tile[at_a + 40u * PITCH], b_0, b_1, b_2, b_3);
                sum_6 = add_quad(sum_6, a_tile[at_a + 48u * PITCH], b_0, b_1, b_2, b_3);
                sum_7 = add_quad(sum_7, a_tile[at_a + 56u * PITCH], b_0, b_1, b_2, b_3);
            }
        }
        workgroupBarrier();
    }

    let row = first_row + lane_row;
    let column = first_column + lane_column;
    store_row(batch, row, column, sum_0);
    store_row(batch, row + 8u, column, sum_1);
    if (LANE_ROWS > 2u) {
        store_row(batch, row + 16u, column, sum_2);
        store_row(batch, row + 24u, column, sum_3);
    }
    if (LANE_ROWS > 4u) {
        store_row(batch, row + 32u, column, sum_4);
        store_row(batch, row + 40u, column, sum_5);
        store_row(batch, row + 48u, column, sum_6);
        store_row(batch, row + 56u, column, sum_7);
    }
}
