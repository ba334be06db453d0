// Sums of products along a depth: a workgroup makes a tile of TILE_ROWS by TILE_COLUMNS of them.
//
// tile_load      what a lane brings into workgroup memory for a step of the depth
// tile_put       puts it there
// tile_multiply  what a lane adds up: LANE_ROWS rows, ROW_LANES apart, by 4 columns
// tile_store     brings the slices together and stores
//
// The depth goes by in steps of STEP places. The rows and the columns of a step lie in workgroup
// memory as quads along the depth, with one quad of padding a line, so that neighbouring lanes meet
// no bank twice. A lane's columns are COLUMN_LANES apart. With ACROSS the quads of the columns lie
// along the columns, and a lane's columns are one quad of them.
//
// SLICES groups of lanes share a step: each makes the whole tile over its own part of the step, and
// the sums are brought together in the end. That is for small tiles: what is too small to fill a
// device with large ones has too few lanes otherwise, and waits for memory once a step.
//
// The neighbour at lane ^ 1 shares the columns and that at lane ^ 2 the rows: NVIDIA's memory
// serves such pairs at once. What the next step needs is asked for while a step computes. Sums are
// named, not an array: an array indexed in a loop would live in memory.
//
// The kernel declares
//   TILE_ROWS, TILE_COLUMNS, LANE_ROWS, STEP, SLICES   LANE_ROWS is 2, 4 or 8; TILE_ROWS a multiple
//       of 2 * LANE_ROWS, TILE_COLUMNS of 4; a slice has at most 8 quads of a step; a lane fetches
//       at most 4 quads of the rows
//   COMPACT   what loads and multiplies stands in the text once, in loops: drivers compile that in
//       a fraction of the time, and it runs slower
//   ROWS_BY_DEPTH, ACROSS   the former: whether neighbouring lanes fetch neighbours in depth, or
//       else in the rows
//   quad_at(i), put_quad(i, quad)   workgroup memory: TILE_END quads for a step, GATHERED at last
//   Origin   where a lane's share lies
//   row_quad(origin, row, first, k, end)   the quad at place k, of the step that begins at `first`,
//       of a row of the tile; zero from `end` on
//   Columns, load_columns(origin, thread, first, end), put_columns(thread, columns)   what a lane
//       brings of the columns
//   Target, store_four(to, row, sums)   where sums go; stores four columns of a row of the tile
//
// turns  a STEP-th of the depth; SLICES and FOURS in the end

const QUADS = STEP / 4u;
const STRIDE = QUADS + 1u;
const ROW_LANES = TILE_ROWS / LANE_ROWS;
const COLUMN_LANES = TILE_COLUMNS / 4u;
const SLICE = ROW_LANES * COLUMN_LANES;
const WORKGROUP = SLICE * SLICES;
const SLICE_QUADS = QUADS / SLICES;
const ROW_QUADS = TILE_ROWS * QUADS;
// The columns lie behind the rows.
const COLUMNS_AT = TILE_ROWS * STRIDE;
const TILE_END = COLUMNS_AT + TILE_COLUMNS * STRIDE;
const FOURS = TILE_ROWS * COLUMN_LANES;
const GATHERED = min(SLICES - 1u, 1u) * SLICES * FOURS;

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

// What a lane brings into workgroup memory for a step.
struct Share {
    row_0: vec4<f32>,
    row_1: vec4<f32>,
    row_2: vec4<f32>,
    row_3: vec4<f32>,
    columns: Columns,
}

// Where a lane's sums stand.
struct Place {
    slice: u32,
    row: u32,
    column: u32,
}

fn tile_place(thread: u32) -> Place {
    let lane = thread % SLICE;
    return Place(thread / SLICE, lane / (2u * COLUMN_LANES) * 2u + lane % 2u,
        lane / 2u % COLUMN_LANES);
}

// The first of the columns that a lane stores.
fn tile_column(thread: u32) -> u32 {
    let column = select(thread % COLUMN_LANES, tile_place(thread).column, SLICES == 1u);
    return select(column, 4u * column, ACROSS);
}

// The i-th of the quads of `lines` lines, as its line and its place among the line's quads.
fn tile_quad(i: u32, lines: u32, by_depth: bool) -> vec2<u32> {
    let across = vec2<u32>(i % lines, i / lines);
    return select(across, vec2<u32>(i / QUADS, i % QUADS), by_depth);
}

fn tile_row(origin: Origin, i: u32, first: u32, end: u32) -> vec4<f32> {
    if (i >= ROW_QUADS) {
        return vec4<f32>();
    }
    let at = tile_quad(i, TILE_ROWS, ROWS_BY_DEPTH);
    return row_quad(origin, at.x, first, 4u * at.y, end);
}

fn tile_put_row(i: u32, quad: vec4<f32>) {
    if (i < ROW_QUADS) {
        let at = tile_quad(i, TILE_ROWS, ROWS_BY_DEPTH);
        put_quad(at.x * STRIDE + at.y, quad);
    }
}

fn tile_load(origin: Origin, thread: u32, first: u32, end: u32) -> Share {
    var share = Share();
    share.row_0 = tile_row(origin, thread, first, end);
    if (ROW_QUADS > WORKGROUP) {
        share.row_1 = tile_row(origin, thread + WORKGROUP, first, end);
    }
    if (ROW_QUADS > 2u * WORKGROUP) {
        share.row_2 = tile_row(origin, thread + 2u * WORKGROUP, first, end);
        share.row_3 = tile_row(origin, thread + 3u * WORKGROUP, first, end);
    }
    share.columns = load_columns(origin, thread, first, end);
    return share;
}

fn tile_put(thread: u32, share: Share) {
    tile_put_row(thread, share.row_0);
    if (ROW_QUADS > WORKGROUP) {
        tile_put_row(thread + WORKGROUP, share.row_1);
    }
    if (ROW_QUADS > 2u * WORKGROUP) {
        tile_put_row(thread + 2u * WORKGROUP, share.row_2);
        tile_put_row(thread + 3u * WORKGROUP, share.row_3);
    }
    put_columns(thread, share.columns);
}

// A lane's four columns at the four places of a quad of the depth, a place after the other.
fn tile_columns(column: u32, quad: u32) -> mat4x4<f32> {
    if (ACROSS) {
        let at = COLUMNS_AT + 4u * quad * COLUMN_LANES + column;
        return mat4x4<f32>(quad_at(at), quad_at(at + COLUMN_LANES), quad_at(at + 2u * COLUMN_LANES),
            quad_at(at + 3u * COLUMN_LANES));
    }
    let at = COLUMNS_AT + column * STRIDE + quad;
    return transpose(mat4x4<f32>(quad_at(at), quad_at(at + COLUMN_LANES * STRIDE),
        quad_at(at + 2u * COLUMN_LANES * STRIDE), quad_at(at + 3u * COLUMN_LANES * STRIDE)));
}

// sum + the products of a quad of a row with four columns.
fn tile_add_quad(sum: vec4<f32>, row: vec4<f32>, columns: mat4x4<f32>) -> vec4<f32> {
    let first = fma(vec4<f32>(row.y), columns[1], fma(vec4<f32>(row.x), columns[0], sum));
    return fma(vec4<f32>(row.w), columns[3], fma(vec4<f32>(row.z), columns[2], first));
}

// sums + what quad k of the slice adds.
fn tile_add_places(sums: Sums, place: Place, k: u32) -> Sums {
    let quad = place.slice * SLICE_QUADS + k;
    let at = place.row * STRIDE + quad;
    let columns = tile_columns(place.column, quad);
    var added = sums;
    added.row_0 = tile_add_quad(sums.row_0, quad_at(at), columns);
    added.row_1 = tile_add_quad(sums.row_1, quad_at(at + ROW_LANES * STRIDE), columns);
    if (LANE_ROWS > 2u) {
        added.row_2 = tile_add_quad(sums.row_2, quad_at(at + 2u * ROW_LANES * STRIDE), columns);
        added.row_3 = tile_add_quad(sums.row_3, quad_at(at + 3u * ROW_LANES * STRIDE), columns);
    }
    if (LANE_ROWS > 4u) {
        added.row_4 = tile_add_quad(sums.row_4, quad_at(at + 4u * ROW_LANES * STRIDE), columns);
        added.row_5 = tile_add_quad(sums.row_5, quad_at(at + 5u * ROW_LANES * STRIDE), columns);
        added.row_6 = tile_add_quad(sums.row_6, quad_at(at + 6u * ROW_LANES * STRIDE), columns);
        added.row_7 = tile_add_quad(sums.row_7, quad_at(at + 7u * ROW_LANES * STRIDE), columns);
    }
    return added;
}

fn tile_add_step(sums: Sums, place: Place, end: u32) -> Sums {
    if (COMPACT) {
        var all = sums;
        // A bound that the compiler does not know, so that it does not unroll the loop.
        for (var k = 0u; k < min(SLICE_QUADS, end); k++) {
            all = tile_add_places(all, place, k);
        }
        return all;
    }
    var added = tile_add_places(sums, place, 0u);
    if (SLICE_QUADS > 1u) {
        added = tile_add_places(added, place, 1u);
    }
    if (SLICE_QUADS > 2u) {
        added = tile_add_places(added, place, 2u);
    }
    if (SLICE_QUADS > 3u) {
        added = tile_add_places(added, place, 3u);
    }
    if (SLICE_QUADS > 4u) {
        added = tile_add_places(added, place, 4u);
        added = tile_add_places(added, place, 5u);
        added = tile_add_places(added, place, 6u);
        added = tile_add_places(added, place, 7u);
    }
    return added;
}

// The sums over the depth from begin to end.
fn tile_multiply(origin: Origin, thread: u32, begin: u32, end: u32) -> Sums {
    let place = tile_place(thread);
    var sums = Sums();
    if (COMPACT) {
        for (var next = begin; next < end; next += STEP) {
            let columns = load_columns(origin, thread, next, end);
            for (var i = thread; i < ROW_QUADS; i += WORKGROUP) {
                tile_put_row(i, tile_row(origin, i, next, end));
            }
            workgroupBarrier();
            put_columns(thread, columns);
            workgroupBarrier();
            sums = tile_add_step(sums, place, end);
            workgroupBarrier();
        }
        return sums;
    }
    let first = tile_load(origin, thread, begin, end);
    workgroupBarrier();
    tile_put(thread, first);
    workgroupBarrier();
    // Without a branch around it, what is fetched here has the length of a step to arrive.
    for (var next = begin + STEP; next < end; next += STEP) {
        let share = tile_load(origin, thread, next, end);
        sums = tile_add_step(sums, place, end);
        workgroupBarrier();
        tile_put(thread, share);
        workgroupBarrier();
    }
    sums = tile_add_step(sums, place, end);
    if (SLICES > 1u) {
        workgroupBarrier();
    }
    return sums;
}

fn tile_store_row(to: Target, place: Place, k: u32, sums: vec4<f32>) {
    let row = place.row + k * ROW_LANES;
    if (SLICES == 1u) {
        store_four(to, row, sums);
    } else {
        put_quad(place.slice * FOURS + row * COLUMN_LANES + place.column, sums);
    }
}

// Four columns of row at / COLUMN_LANES of the sums of all slices.
fn tile_gathered(at: u32) -> vec4<f32> {
    var sum = quad_at(at);
    for (var slice = 1u; slice < SLICES; slice++) {
        sum += quad_at(slice * FOURS + at);
    }
    return sum;
}

fn tile_store(to: Target, thread: u32, sums: Sums) {
    let place = tile_place(thread);
    tile_store_row(to, place, 0u, sums.row_0);
    tile_store_row(to, place, 1u, sums.row_1);
    if (LANE_ROWS > 2u) {
        tile_store_row(to, place, 2u, sums.row_2);
        tile_store_row(to, place, 3u, sums.row_3);
    }
    if (LANE_ROWS > 4u) {
        tile_store_row(to, place, 4u, sums.row_4);
        tile_store_row(to, place, 5u, sums.row_5);
        tile_store_row(to, place, 6u, sums.row_6);
        tile_store_row(to, place, 7u, sums.row_7);
    }
    if (SLICES > 1u) {
        workgroupBarrier();
        for (var at = thread; at < FOURS; at += WORKGROUP) {
            store_four(to, at / COLUMN_LANES, tile_gathered(at));
        }
    }
}
