// What matmul/quant_tiled, quant_tiles and quant_tiled_pair share: a workgroup multiplies TILE_M
// rows of x by TILE_N rows of a weight
//
// multiply    what a lane adds up: LANE_M rows, ROW_LANES apart, by 4 columns, COLUMN_LANES apart
// store_tile  brings the slices together and stores
//
// The depth goes by in steps of STEP columns. Both tiles of a step hold quads along the depth, with
// one quad of padding a row, so that neighbouring lanes meet no bank twice. SLICES groups of lanes
// share a step: each makes the whole tile over its own part of the step's columns, and the sums are
// brought together in the end. That is for small tiles: a product that is too small to fill a
// device with large ones has too few lanes otherwise, and waits for memory once a step.
//
// The neighbour at lane ^ 1 shares the columns and that at lane ^ 2 the rows: NVIDIA's memory
// serves such pairs at once. What the next step needs is asked for while a step computes. Sums are
// named, not an array: an array indexed in a loop would live in memory.
//
// expects  const TILE_M, TILE_N, LANE_M, STEP, SLICES, X_FOUR, EDGES. LANE_M is 2, 4 or 8; TILE_M a
//          multiple of 2 * LANE_M, TILE_N of 4; at most 8 quads of a step for a slice, at most 4
//          quads of x and 2 octets of the weight a lane to fetch. X_FOUR: columns are a multiple of
//          4, and load4_x reads four at once. EDGES: STEP does not divide the depth. batch,
//          columns, units and x_offset in Params. load_x, load4_x; weight_octet(row, octet): 8
//          columns of a row of the tile; store_four(m, column, sums): one row, 4 columns

const QUADS = STEP / 4u;
const OCTETS = STEP / 8u;
const STRIDE = QUADS + 1u;
const ROW_LANES = TILE_M / LANE_M;
const COLUMN_LANES = TILE_N / 4u;
const SLICE = ROW_LANES * COLUMN_LANES;
const WORKGROUP = SLICE * SLICES;
const SLICE_QUADS = QUADS / SLICES;
const X_QUADS = TILE_M * QUADS;
const W_OCTETS = TILE_N * OCTETS;
// The tile of the weight lies behind that of x.
const W_TILE = TILE_M * STRIDE;
const FOURS = TILE_M * COLUMN_LANES;
const GATHERED = min(SLICES - 1u, 1u) * SLICES * FOURS;

var<workgroup> tile: array<vec4<f32>, max((TILE_M + TILE_N) * STRIDE, GATHERED)>;

// A lane's sums; those past LANE_M are unused.
struct Sums {
    m_0: vec4<f32>,
    m_1: vec4<f32>,
    m_2: vec4<f32>,
    m_3: vec4<f32>,
    m_4: vec4<f32>,
    m_5: vec4<f32>,
    m_6: vec4<f32>,
    m_7: vec4<f32>,
}

// What a lane brings into the tiles for a step.
struct Share {
    x_0: vec4<f32>,
    x_1: vec4<f32>,
    x_2: vec4<f32>,
    x_3: vec4<f32>,
    w_0: array<vec4<f32>, 2>,
    w_1: array<vec4<f32>, 2>,
}

// Where a lane's sums stand.
struct Place {
    slice: u32,
    row: u32,
    column: u32,
}

fn place_of(thread: u32) -> Place {
    let lane = thread % SLICE;
    return Place(thread / SLICE, lane / (2u * COLUMN_LANES) * 2u + lane % 2u,
        lane / 2u % COLUMN_LANES);
}

// Columns column to column + 3 of row m of x; zero outside.
fn quad_of_x(m: u32, column: u32) -> vec4<f32> {
    if (m >= params.batch || column >= params.columns) {
        return vec4<f32>();
    }
    let at = m * params.columns + column;
    if (X_FOUR && params.x_offset % 4u == 0u) {
        return load4_x(at / 4u);
    }
    var quad = vec4<f32>(load_x(at), 0.0, 0.0, 0.0);
    if (column + 1u < params.columns) { quad.y = load_x(at + 1u); }
    if (column + 2u < params.columns) { quad.z = load_x(at + 2u); }
    if (column + 3u < params.columns) { quad.w = load_x(at + 3u); }
    return quad;
}

// Quad i of the tile of x in the step that begins at column `first`.
fn x_share(i: u32, first_m: u32, first: u32) -> vec4<f32> {
    if (i >= X_QUADS) {
        return vec4<f32>();
    }
    return quad_of_x(first_m + i / QUADS, first + 4u * (i % QUADS));
}

// Octet i of the tile of the weight in the same step; zero past the end of a row.
fn w_share(i: u32, first: u32) -> array<vec4<f32>, 2> {
    let octet = first / 8u + i % OCTETS;
    if (i >= W_OCTETS || (EDGES && octet >= 4u * params.units)) {
        return array<vec4<f32>, 2>();
    }
    return weight_octet(i / OCTETS, octet);
}

fn load_share(thread: u32, first_m: u32, first: u32) -> Share {
    var share = Share();
    share.x_0 = x_share(thread, first_m, first);
    if (X_QUADS > WORKGROUP) {
        share.x_1 = x_share(thread + WORKGROUP, first_m, first);
    }
    if (X_QUADS > 2u * WORKGROUP) {
        share.x_2 = x_share(thread + 2u * WORKGROUP, first_m, first);
        share.x_3 = x_share(thread + 3u * WORKGROUP, first_m, first);
    }
    share.w_0 = w_share(thread, first);
    if (W_OCTETS > WORKGROUP) {
        share.w_1 = w_share(thread + WORKGROUP, first);
    }
    return share;
}

fn put_x(i: u32, quad: vec4<f32>) {
    if (i < X_QUADS) {
        tile[i / QUADS * STRIDE + i % QUADS] = quad;
    }
}

fn put_w(i: u32, octet: array<vec4<f32>, 2>) {
    if (i < W_OCTETS) {
        let at = W_TILE + i / OCTETS * STRIDE + 2u * (i % OCTETS);
        tile[at] = octet[0];
        tile[at + 1u] = octet[1];
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
    if (W_OCTETS > WORKGROUP) {
        put_w(thread + WORKGROUP, share.w_1);
    }
}

// sum + the products of a quad of x, along the depth, with four quads of the weight.
fn add_quad(sum: vec4<f32>, x: vec4<f32>, w: mat4x4<f32>) -> vec4<f32> {
    let first = fma(vec4<f32>(x.y), w[1], fma(vec4<f32>(x.x), w[0], sum));
    return fma(vec4<f32>(x.w), w[3], fma(vec4<f32>(x.z), w[2], first));
}

// sums + what quad k of the slice adds.
fn add_columns(sums: Sums, place: Place, k: u32) -> Sums {
    let quad = place.slice * SLICE_QUADS + k;
    let at_w = W_TILE + place.column * STRIDE + quad;
    let at_x = place.row * STRIDE + quad;
    let w = transpose(mat4x4<f32>(tile[at_w], tile[at_w + COLUMN_LANES * STRIDE],
        tile[at_w + 2u * COLUMN_LANES * STRIDE], tile[at_w + 3u * COLUMN_LANES * STRIDE]));
    var added = sums;
    added.m_0 = add_quad(sums.m_0, tile[at_x], w);
    added.m_1 = add_quad(sums.m_1, tile[at_x + ROW_LANES * STRIDE], w);
    if (LANE_M > 2u) {
        added.m_2 = add_quad(sums.m_2, tile[at_x + 2u * ROW_LANES * STRIDE], w);
        added.m_3 = add_quad(sums.m_3, tile[at_x + 3u * ROW_LANES * STRIDE], w);
    }
    if (LANE_M > 4u) {
        added.m_4 = add_quad(sums.m_4, tile[at_x + 4u * ROW_LANES * STRIDE], w);
        added.m_5 = add_quad(sums.m_5, tile[at_x + 5u * ROW_LANES * STRIDE], w);
        added.m_6 = add_quad(sums.m_6, tile[at_x + 6u * ROW_LANES * STRIDE], w);
        added.m_7 = add_quad(sums.m_7, tile[at_x + 7u * ROW_LANES * STRIDE], w);
    }
    return added;
}

fn add_step(sums: Sums, place: Place) -> Sums {
    var added = add_columns(sums, place, 0u);
    if (SLICE_QUADS > 1u) {
        added = add_columns(added, place, 1u);
    }
    if (SLICE_QUADS > 2u) {
        added = add_columns(added, place, 2u);
    }
    if (SLICE_QUADS > 3u) {
        added = add_columns(added, place, 3u);
    }
    if (SLICE_QUADS > 4u) {
        added = add_columns(added, place, 4u);
        added = add_columns(added, place, 5u);
        added = add_columns(added, place, 6u);
        added = add_columns(added, place, 7u);
    }
    return added;
}

fn multiply(thread: u32, first_m: u32) -> Sums {
    let place = place_of(thread);
    let depth = 32u * params.units;
    var sums = Sums();
    put_share(thread, load_share(thread, first_m, 0u));
    workgroupBarrier();
    // Without a branch around it, what is fetched here has the length of a step to arrive.
    for (var next = STEP; next < depth; next += STEP) {
        let share = load_share(thread, first_m, next);
        sums = add_step(sums, place);
        workgroupBarrier();
        put_share(thread, share);
        workgroupBarrier();
    }
    sums = add_step(sums, place);
    if (SLICES > 1u) {
        workgroupBarrier();
    }
    return sums;
}

fn store_or_put(place: Place, first_m: u32, k: u32, sums: vec4<f32>) {
    let row = place.row + k * ROW_LANES;
    if (SLICES == 1u) {
        store_four(first_m + row, place.column, sums);
    } else {
        tile[place.slice * FOURS + row * COLUMN_LANES + place.column] = sums;
    }
}

fn store_tile(thread: u32, first_m: u32, sums: Sums) {
    let place = place_of(thread);
    store_or_put(place, first_m, 0u, sums.m_0);
    store_or_put(place, first_m, 1u, sums.m_1);
    if (LANE_M > 2u) {
        store_or_put(place, first_m, 2u, sums.m_2);
        store_or_put(place, first_m, 3u, sums.m_3);
    }
    if (LANE_M > 4u) {
        store_or_put(place, first_m, 4u, sums.m_4);
        store_or_put(place, first_m, 5u, sums.m_5);
        store_or_put(place, first_m, 6u, sums.m_6);
        store_or_put(place, first_m, 7u, sums.m_7);
    }
    if (SLICES > 1u) {
        workgroupBarrier();
        for (var at = thread; at < FOURS; at += WORKGROUP) {
            var sum = tile[at];
            for (var slice = 1u; slice < SLICES; slice++) {
                sum += tile[slice * FOURS + at];
            }
            store_four(first_m + at / COLUMN_LANES, at % COLUMN_LANES, sum);
        }
    }
}
