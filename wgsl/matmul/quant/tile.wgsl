// What matmul/quant/tiled, quant_tiles, quant_tiled_pair and quant_tiled_transposed share: rows of
// x times a weight that is unpacked eight numbers at once, see parts/tile
//
// expects  const X_FOUR: rows of x begin and end at multiples of 4, and load4_x reads four at once.
//          EDGES: STEP does not divide the depth. A lane fetches at most 2 octets of the weight.
//          batch and x_offset in Params; load_x, load4_x.
//          weight_octet(line, octet): 8 columns of a row of the weight, from column 8 * octet on.
//          Lines are columns of the tile, octets those of the depth. With ACROSS, where the depth
//          goes down the rows of the weight, lines are places of the depth, octets those of the
//          tile
//          store_four(to, row, sums), see parts/tile
// uses     tile

const ROWS_BY_DEPTH = true;
const OCTETS = select(STEP, TILE_COLUMNS, ACROSS) / 8u;
const COLUMN_OCTETS = TILE_COLUMNS * STEP / 8u;

var<workgroup> held: array<vec4<f32>, max(TILE_END, GATHERED)>;

fn quad_at(i: u32) -> vec4<f32> { return held[i]; }
fn put_quad(i: u32, quad: vec4<f32>) { held[i] = quad; }

// The tile's first row of x; rows are `pitch` apart, and `depth` elements from `start` on count.
struct Origin {
    m: u32,
    pitch: u32,
    start: u32,
    depth: u32,
}

// Where a lane stores: the tile's first row, its own first column.
struct Target {
    m: u32,
    n: u32,
}

struct Columns {
    octet_0: array<vec4<f32>, 2>,
    octet_1: array<vec4<f32>, 2>,
}

fn row_quad(origin: Origin, row: u32, first: u32, k: u32, end: u32) -> vec4<f32> {
    let m = origin.m + row;
    let place = first + k;
    if (m >= params.batch || place >= origin.depth) {
        return vec4<f32>();
    }
    let at = m * origin.pitch + origin.start + place;
    if (X_FOUR && params.x_offset % 4u == 0u) {
        return load4_x(at / 4u);
    }
    var quad = vec4<f32>(load_x(at), 0.0, 0.0, 0.0);
    if (place + 1u < origin.depth) { quad.y = load_x(at + 1u); }
    if (place + 2u < origin.depth) { quad.z = load_x(at + 2u); }
    if (place + 3u < origin.depth) { quad.w = load_x(at + 3u); }
    return quad;
}

// Octet i of the columns of the step that begins at `first`; zero from `end` on.
fn column_octet(i: u32, first: u32, end: u32) -> array<vec4<f32>, 2> {
    let line = i / OCTETS + select(0u, first, ACROSS);
    let octet = i % OCTETS + select(first / 8u, 0u, ACROSS);
    if (i >= COLUMN_OCTETS || (EDGES && select(8u * octet, line, ACROSS) >= end)) {
        return array<vec4<f32>, 2>();
    }
    return weight_octet(line, octet);
}

fn load_columns(origin: Origin, thread: u32, first: u32, end: u32) -> Columns {
    var columns = Columns();
    columns.octet_0 = column_octet(thread, first, end);
    if (COLUMN_OCTETS > WORKGROUP) {
        columns.octet_1 = column_octet(thread + WORKGROUP, first, end);
    }
    return columns;
}

fn put_octet(i: u32, octet: array<vec4<f32>, 2>) {
    if (i < COLUMN_OCTETS) {
        let line = i / OCTETS * select(STRIDE, COLUMN_LANES, ACROSS);
        put_quad(COLUMNS_AT + line + 2u * (i % OCTETS), octet[0]);
        put_quad(COLUMNS_AT + line + 2u * (i % OCTETS) + 1u, octet[1]);
    }
}

fn put_columns(thread: u32, columns: Columns) {
    put_octet(thread, columns.octet_0);
    if (COLUMN_OCTETS > WORKGROUP) {
        put_octet(thread + WORKGROUP, columns.octet_1);
    }
}

// The tile whose columns are first_n and on, over a depth up to `end`.
fn make_tile(origin: Origin, thread: u32, first_n: u32, end: u32) {
    let sums = tile_multiply(origin, thread, 0u, end);
    tile_store(Target(origin.m, first_n + tile_column(thread)), thread, sums);
}
