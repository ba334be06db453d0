// What conv/tiled and conv/weight_tiled share: rows times a matrix whose elements are those of x, at
// the places that their column and their place of the depth add up to; what lies outside is zero
//
// The matrix is never stored. What a place of the depth says, the workgroup works out once a step
// and keeps in its memory. See parts/tile.
//
// expects  const COLUMNS_BY_DEPTH: whether neighbouring lanes fetch neighbours in depth, or else in
//          the columns. PADDED: whether anything lies outside of x or of the depth. A workgroup has
//          STEP lanes at least; a lane fetches at most 4 quads of the columns. x with load_x;
//          in_height and in_width in Params.
//          column_at(origin, column): of a column of the tile the place in x, and its y and x
//          depth_at(origin, k, end): the same of place k of the depth, and where the rows lie
//          there; but for the first, OUTSIDE from `end` on
// uses     tile

// From here no column reaches x.
const OUTSIDE = 0x80000000u;
const COLUMN_QUADS = TILE_COLUMNS * QUADS;

// The tiles and the depth of a step; in their place, in the end, the sums. Floats by their bits.
var<workgroup> held: array<vec4<u32>, max(TILE_END + STEP, GATHERED)>;

fn quad_at(i: u32) -> vec4<f32> { return bitcast<vec4<f32>>(held[i]); }
fn put_quad(i: u32, quad: vec4<f32>) { held[i] = bitcast<vec4<u32>>(quad); }

// Place k of the step. Lanes that fetch neighbouring quads meet no bank twice.
fn step_at(k: u32) -> u32 { return TILE_END + k % 4u * QUADS + k / 4u; }

struct Columns {
    quad_0: vec4<f32>,
    quad_1: vec4<f32>,
    quad_2: vec4<f32>,
    quad_3: vec4<f32>,
    // a place of the step that follows
    depth: vec4<u32>,
}

fn x_value(column: vec3<u32>, k: u32) -> f32 {
    let depth = held[step_at(k)];
    let place = column.x + depth.x;
    if (!PADDED) {
        return load_x(place);
    }
    let inside = column.y + depth.y < params.in_height && column.z + depth.z < params.in_width;
    return select(0.0, load_x(select(0u, place, inside)), inside);
}

fn column_quad(origin: Origin, i: u32) -> vec4<f32> {
    if (i >= COLUMN_QUADS) {
        return vec4<f32>();
    }
    let at = tile_quad(i, TILE_COLUMNS, COLUMNS_BY_DEPTH);
    let column = column_at(origin, at.x);
    let k = 4u * at.y;
    return vec4<f32>(x_value(column, k), x_value(column, k + 1u), x_value(column, k + 2u),
        x_value(column, k + 3u));
}

fn load_columns(origin: Origin, thread: u32, first: u32, end: u32) -> Columns {
    var columns = Columns();
    columns.quad_0 = column_quad(origin, thread);
    if (COLUMN_QUADS > WORKGROUP) {
        columns.quad_1 = column_quad(origin, thread + WORKGROUP);
    }
    if (COLUMN_QUADS > 2u * WORKGROUP) {
        columns.quad_2 = column_quad(origin, thread + 2u * WORKGROUP);
        columns.quad_3 = column_quad(origin, thread + 3u * WORKGROUP);
    }
    columns.depth = depth_at(origin, first + STEP + thread, end);
    return columns;
}

fn put_column(i: u32, quad: vec4<f32>) {
    if (i < COLUMN_QUADS) {
        let at = tile_quad(i, TILE_COLUMNS, COLUMNS_BY_DEPTH);
        put_quad(COLUMNS_AT + at.x * STRIDE + at.y, quad);
    }
}

fn put_depth(thread: u32, depth: vec4<u32>) {
    if (thread < STEP) {
        held[step_at(thread)] = depth;
    }
}

fn put_columns(thread: u32, columns: Columns) {
    put_column(thread, columns.quad_0);
    if (COLUMN_QUADS > WORKGROUP) {
        put_column(thread + WORKGROUP, columns.quad_1);
    }
    if (COLUMN_QUADS > 2u * WORKGROUP) {
        put_column(thread + 2u * WORKGROUP, columns.quad_2);
        put_column(thread + 3u * WORKGROUP, columns.quad_3);
    }
    put_depth(thread, columns.depth);
}

fn multiply(origin: Origin, thread: u32, begin: u32, end: u32) -> Sums {
    put_depth(thread, depth_at(origin, begin + thread, end));
    workgroupBarrier();
    return tile_multiply(origin, thread, begin, end);
}
