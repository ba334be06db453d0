// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z %
//       batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, PARTS, rows, columns)  contiguous; part p is the sum over the p-th part of the
//       depth, so with PARTS = 1 out is the product, else combine.wgsl adds the parts
// grid  one workgroup per (batch, part, tile of TILE_ROWS rows, tile of TILE_COLUMNS columns)
// fuses -> out
// turns depth // STEP // PARTS + 512
//
// A lane makes LANE_ROWS x LANE_COLUMNS sums, each 4 or 8, in blocks of 4 x 4; the blocks of a lane
// are half a tile apart. Sums are matrices with names, not an array: an array indexed in a loop
// would live in memory.
//
// The tiles of a and b lie side by side in workgroup memory, depth first, in quads of rows and of
// columns: at one depth a lane needs one quad for 4 rows or 4 columns. Depths are constants where
// quads are read, so that every read is a fixed distance from one place, which is held in bounds
// once. 32 neighbouring lanes make 4 x 8 blocks (16 make 4 x 4 where a tile has no more), in an
// order in which the neighbour at lane ^ 1 shares the columns and that at lane ^ 2 the rows:
// NVIDIA's memory serves such pairs at once.
//
// While a step of the depth is computed, each lane already fetches a block of 4 x 4 of a or b (or
// two) for the next step. It stays in registers as it was read and is transposed when it is put
// into the tile: whatever touched it earlier would wait for it. With two BUFFERS it is put beside
// the step before: one barrier a step instead of two, for twice the memory.
//
// SLICES groups of lanes share a step: each makes the whole tile over its own part of the step's
// depth, and the sums are brought together in the end, a block of every lane at a time. That is for
// products too small to fill a device with large tiles: they have more lanes, and wait for memory
// and for each other fewer times.
//
// *_DEPTH_FIRST says that neighbours in depth are read together, else neighbours across. With
// *_FOUR these are contiguous and the other strides multiples of 4: load4_* reads four elements at
// once, and load_* serves only edges and views that begin at another element than a fourth. Give
// the same values in both, or set *_FOUR to false. EDGES is false where the tiles cover the
// matrices exactly. All of these change speed, never the result, and so does COMPACT: what fetches
// and multiplies stands in the text once, in loops, and a step is fetched when it is needed. Drivers
// compile that in a fraction of the time; products take longer.

const LANE_ROWS = 8u;
const LANE_COLUMNS = 4u;
// Multiples of 4 * LANE_ROWS and 8 * LANE_COLUMNS, or 4 * LANE_COLUMNS.
const TILE_ROWS = 64u;
const TILE_COLUMNS = 64u;
// 4, 8 or 16 for each slice, with at most two blocks for a lane to fetch.
const STEP = 16u;
const SLICES = 1u;
const BUFFERS = 1u;
const PARTS = 1u;
const HAS_BIAS = false;
const EDGES = true;
const A_DEPTH_FIRST = true;
const B_DEPTH_FIRST = false;
const A_FOUR = false;
const B_FOUR = false;
const COMPACT = false;

const ROW_LANES = TILE_ROWS / LANE_ROWS;
const COLUMN_LANES = TILE_COLUMNS / LANE_COLUMNS;
const SLICE = ROW_LANES * COLUMN_LANES;
const WORKGROUP = SLICE * SLICES;
const SLICE_STEP = STEP / SLICES;
// Columns of lanes that neighbours make.
const WIDTH = min(COLUMN_LANES, 8u);
// A tile of a begins at quad 0, that of b behind it.
const ROW_QUADS = TILE_ROWS / 4u;
const COLUMN_QUADS = TILE_COLUMNS / 4u;
const QUADS = ROW_QUADS + COLUMN_QUADS;
const A_BLOCKS = ROW_QUADS * STEP / 4u;
const BLOCKS = QUADS * STEP / 4u;
// Where slices bring their sums together, the tiles' memory holds a block of every lane.
const GATHERED = min(SLICES - 1u, 1u) * 4u * WORKGROUP;
const HELD = max(BUFFERS, (GATHERED + QUADS * STEP - 1u) / (QUADS * STEP));

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
fn load4_a(i: u32) -> vec4<f32> { return vec4(load_a(4*i), load_a(4*i+1), load_a(4*i+2), load_a(4*i+3)); }
fn load4_b(i: u32) -> vec4<f32> { return vec4(load_b(4*i), load_b(4*i+1), load_b(4*i+2), load_b(4*i+3)); }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> tile: array<array<array<array<vec4<f32>, QUADS>, SLICE_STEP>, SLICES>, HELD>;

// A block of 4 x 4 that a lane fetches at every step. Across is a's rows or b's columns.
struct Block {
    from_b: bool,
    is_there: bool,
    depth_first: bool,
    // where it lies in the tile
    quad: u32,
    depth: u32,
    // its place among the rows or columns, how many there are, and its first element at depth 0
    first: u32,
    count: u32,
    at: u32,
    across: u32,
    along: u32,
}

// A lane's sums: the block at its place, those half a tile to the right and below, and both.
struct Sums {
    here: mat4x4<f32>,
    right: mat4x4<f32>,
    below: mat4x4<f32>,
    across: mat4x4<f32>,
}

// The i-th of a tile's blocks as (quad, depth / 4). Where the depth is contiguous two neighbours in
// depth are read together, 32 bytes, and no more: they share banks when they are put.
fn place_of(i: u32, quads: u32, depth_first: bool) -> vec2<u32> {
    if (depth_first) {
        return vec2<u32>(i / 2u % quads, i % 2u + i / (2u * quads) * 2u);
    }
    return vec2<u32>(i % quads, i / quads);
}

fn block_of_a(i: u32, base: u32, first_row: u32) -> Block {
    let place = place_of(i, ROW_QUADS, A_DEPTH_FIRST);
    let row = first_row + 4u * place.x;
    let depth = 4u * place.y;
    let at = base + row * params.a_row + depth * params.a_depth;
    return Block(false, true, A_DEPTH_FIRST, place.x, depth, row, params.rows, at, params.a_row,
        params.a_depth);
}

fn block_of_b(i: u32, base: u32, first_column: u32) -> Block {
    let place = place_of(i, COLUMN_QUADS, B_DEPTH_FIRST);
    let column = first_column + 4u * place.x;
    let depth = 4u * place.y;
    let at = base + column * params.b_column + depth * params.b_depth;
    return Block(true, BLOCKS % WORKGROUP == 0u || i + A_BLOCKS < BLOCKS, B_DEPTH_FIRST,
        ROW_QUADS + place.x, depth, column, params.columns, at, params.b_column, params.b_depth);
}

fn block_at(i: u32, a_base: u32, b_base: u32, first_row: u32, first_column: u32) -> Block {
    if (i < A_BLOCKS) {
        return block_of_a(i, a_base, first_row);
    }
    return block_of_b(i - A_BLOCKS, b_base, first_column);
}

// The first `count` of four elements, the others zero. Places past them are those of the last:
// branches around every load would be most of the kernel.
fn load_some(from_b: bool, at: u32, step: u32, count: u32) -> vec4<f32> {
    let places = vec4<u32>(0u, 1u, 2u, 3u);
    let i = vec4<u32>(at) + step * min(places, vec4<u32>(max(count, 1u) - 1u));
    var four: vec4<f32>;
    if (from_b) {
        four = vec4<f32>(load_b(i.x), load_b(i.y), load_b(i.z), load_b(i.w));
    } else {
        four = vec4<f32>(load_a(i.x), load_a(i.y), load_a(i.z), load_a(i.w));
    }
    return select(vec4<f32>(), four, places < vec4<u32>(count));
}

// A block at depth l and on, zero outside: its columns are rows of a (columns of b) with
// depth_first, else depths.
fn fetch(block: Block, l: u32) -> mat4x4<f32> {
    let at = block.at + l * block.along;
    var across = 4u;
    var along = 4u;
    if (EDGES) {
        across = block.count - min(block.first, block.count);
        along = params.depth - min(l + block.depth, params.depth);
    }
    let slow = select(block.along, block.across, block.depth_first);
    let fast = select(block.across, block.along, block.depth_first);
    if (across > 3u && along > 3u) {
        if (A_FOUR && !block.from_b && params.a_offset % 4u == 0u) {
            let i = at / 4u;
            let step = slow / 4u;
            return mat4x4<f32>(load4_a(i), load4_a(i + step), load4_a(i + 2u * step),
                load4_a(i + 3u * step));
        }
        if (B_FOUR && block.from_b && params.b_offset % 4u == 0u) {
            let i = at / 4u;
            let step = slow / 4u;
            return mat4x4<f32>(load4_b(i), load4_b(i + step), load4_b(i + 2u * step),
                load4_b(i + 3u * step));
        }
    }
    let lines = select(along, across, block.depth_first);
    let length = select(across, along, block.depth_first);
    return mat4x4<f32>(
        load_some(block.from_b, at, fast, select(0u, length, lines > 0u)),
        load_some(block.from_b, at + slow, fast, select(0u, length, lines > 1u)),
        load_some(block.from_b, at + 2u * slow, fast, select(0u, length, lines > 2u)),
        load_some(block.from_b, at + 3u * slow, fast, select(0u, length, lines > 3u)));
}

fn put(block: Block, buffer: u32, values: mat4x4<f32>) {
    var depths = values;
    if (block.depth_first) {
        depths = transpose(values);
    }
    let slice = block.depth / SLICE_STEP;
    let k = block.depth % SLICE_STEP;
    tile[buffer][slice][k][block.quad] = depths[0];
    tile[buffer][slice][k + 1u][block.quad] = depths[1];
    tile[buffer][slice][k + 2u][block.quad] = depths[2];
    tile[buffer][slice][k + 3u][block.quad] = depths[3];
}

// sums + four rows of a times four columns of b, at one depth; a row of sums is a matrix's column.
fn add_outer(sums: mat4x4<f32>, rows: vec4<f32>, columns: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        fma(vec4<f32>(rows.x), columns, sums[0]), fma(vec4<f32>(rows.y), columns, sums[1]),
        fma(vec4<f32>(rows.z), columns, sums[2]), fma(vec4<f32>(rows.w), columns, sums[3]));
}

// The part of a step's depth that a lane multiplies, and its place in the tile.
struct Place {
    slice: u32,
    row: u32,
    column: u32,
}

fn place_of_sums(thread: u32) -> Place {
    let lane = thread % SLICE;
    return Place(thread / SLICE,
        lane / (4u * COLUMN_LANES) * 4u + lane % 2u + lane / (2u * WIDTH) % 2u * 2u,
        lane / (4u * WIDTH) % (COLUMN_LANES / WIDTH) * WIDTH + lane / 2u % WIDTH);
}

// sums + what depth k of the lane's slice of the step adds.
fn multiply(sums: Sums, buffer: u32, k: u32, place: Place) -> Sums {
    var next = sums;
    let slice = place.slice;
    let rows = tile[buffer][slice][k][place.row];
    let columns = tile[buffer][slice][k][ROW_QUADS + place.column];
    next.here = add_outer(sums.here, rows, columns);
    if (LANE_COLUMNS > 4u) {
        next.right = add_outer(sums.right, rows,
            tile[buffer][slice][k][ROW_QUADS + COLUMN_LANES + place.column]);
    }
    if (LANE_ROWS > 4u) {
        let lower = tile[buffer][slice][k][ROW_LANES + place.row];
        next.below = add_outer(sums.below, lower, columns);
        if (LANE_COLUMNS > 4u) {
            next.across = add_outer(sums.across, lower,
                tile[buffer][slice][k][ROW_QUADS + COLUMN_LANES + place.column]);
        }
    }
    return next;
}

fn multiply_step(sums: Sums, buffer: u32, place: Place) -> Sums {
    if (COMPACT) {
        var all = sums;
        // A bound that the compiler does not know, so that it does not unroll the loop.
        for (var k = 0u; k < min(SLICE_STEP, params.depth); k++) {
            all = multiply(all, buffer, k, place);
        }
        return all;
    }
    var next = multiply(sums, buffer, 0u, place);
    next = multiply(next, buffer, 1u, place);
    next = multiply(next, buffer, 2u, place);
    next = multiply(next, buffer, 3u, place);
    if (SLICE_STEP > 4u) {
        next = multiply(next, buffer, 4u, place);
        next = multiply(next, buffer, 5u, place);
        next = multiply(next, buffer, 6u, place);
        next = multiply(next, buffer, 7u, place);
    }
    if (SLICE_STEP > 8u) {
        next = multiply(next, buffer, 8u, place);
        next = multiply(next, buffer, 9u, place);
        next = multiply(next, buffer, 10u, place);
        next = multiply(next, buffer, 11u, place);
        next = multiply(next, buffer, 12u, place);
        next = multiply(next, buffer, 13u, place);
        next = multiply(next, buffer, 14u, place);
        next = multiply(next, buffer, 15u, place);
    }
    return next;
}

fn store_value(place: u32, column: u32, sum: f32) {
    if (EDGES && column >= params.columns) {
        return;
    }
    var value = sum;
    if (HAS_BIAS) {
        value += load_bias(column);
    }
    store_out(place + column, value);
}

fn store_row(part: u32, row: u32, column: u32, sums: vec4<f32>) {
    if (EDGES && row >= params.rows) {
        return;
    }
    let place = (part * params.rows + row) * params.columns;
    store_value(place, column, sums.x);
    store_value(place, column + 1u, sums.y);
    store_value(place, column + 2u, sums.z);
    store_value(place, column + 3u, sums.w);
}

// The i-th quad of the tiles' memory.
fn put_gathered(i: u32, sums: vec4<f32>) {
    tile[i / (QUADS * STEP)][i / (QUADS * SLICE_STEP) % SLICES][i / QUADS % SLICE_STEP][i % QUADS] =
        sums;
}

fn gathered(i: u32) -> vec4<f32> {
    return tile[i / (QUADS * STEP)][i / (QUADS * SLICE_STEP) % SLICES][i / QUADS % SLICE_STEP]
        [i % QUADS];
}

// One block of every lane; these cover the matrix from row and column on.
fn store_blocks(thread: u32, place: Place, part: u32, row: u32, column: u32, sums: mat4x4<f32>) {
    if (SLICES == 1u) {
        let top = row + 4u * place.row;
        let left = column + 4u * place.column;
        store_row(part, top, left, sums[0]);
        store_row(part, top + 1u, left, sums[1]);
        store_row(part, top + 2u, left, sums[2]);
        store_row(part, top + 3u, left, sums[3]);
    } else {
        let at = 4u * (place.slice * SLICE + place.row * COLUMN_LANES) + place.column;
        workgroupBarrier();
        put_gathered(at, sums[0]);
        put_gathered(at + COLUMN_LANES, sums[1]);
        put_gathered(at + 2u * COLUMN_LANES, sums[2]);
        put_gathered(at + 3u * COLUMN_LANES, sums[3]);
        workgroupBarrier();
        for (var i = thread; i < 4u * SLICE; i += WORKGROUP) {
            var sum = gathered(i);
            for (var slice = 1u; slice < SLICES; slice++) {
                sum += gathered(4u * SLICE * slice + i);
            }
            store_row(part, row + i / COLUMN_LANES, column + i % COLUMN_LANES * 4u, sum);
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * groups.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let column_tiles = (params.columns + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    let row_tiles = (params.rows + TILE_ROWS - 1u) / TILE_ROWS;
    let first_column = group % column_tiles * TILE_COLUMNS;
    let first_row = group / column_tiles % row_tiles * TILE_ROWS;
    let part = group / (column_tiles * row_tiles);
    let batch = part / PARTS;
    let outer = batch / params.batch_inner;
    let inner = batch % params.batch_inner;
    let a_base = outer * params.a_outer + inner * params.a_inner;
    let b_base = outer * params.b_outer + inner * params.b_inner;
    let steps = (params.depth + STEP - 1u) / STEP;
    let length = (steps + PARTS - 1u) / PARTS * STEP;
    let begin = part % PARTS * length;
    let end = min(begin + length, params.depth);

    let block = block_at(lane, a_base, b_base, first_row, first_column);
    let other = block_at(lane + WORKGROUP, a_base, b_base, first_row, first_column);
    let place = place_of_sums(lane);

    var sums = Sums(mat4x4<f32>(), mat4x4<f32>(), mat4x4<f32>(), mat4x4<f32>());
    // A part may be empty.
    var buffer = 0u;
    if (COMPACT) {
        for (var l = begin; l < end; l += STEP) {
            for (var i = lane; i < BLOCKS; i += WORKGROUP) {
                let fetched = block_at(i, a_base, b_base, first_row, first_column);
                put(fetched, buffer, fetch(fetched, l));
            }
            workgroupBarrier();
            sums = multiply_step(sums, buffer, place);
            workgroupBarrier();
        }
    } else if (begin < end) {
        var values = mat4x4<f32>();
        var others = mat4x4<f32>();
        if (block.is_there) {
            put(block, buffer, fetch(block, begin));
        }
        if (BLOCKS > WORKGROUP && other.is_there) {
            put(other, buffer, fetch(other, begin));
        }
        workgroupBarrier();
        // The first step is fetched before and the last multiplied behind: with no branch between
        // fetching and putting, what is fetched has the length of a step to arrive.
        for (var l = begin + STEP; l < end; l += STEP) {
            if (block.is_there) {
                values = fetch(block, l);
            }
            if (BLOCKS > WORKGROUP && other.is_there) {
                others = fetch(other, l);
            }
            sums = multiply_step(sums, buffer, place);
            if (BUFFERS == 1u) {
                workgroupBarrier();
            } else {
                buffer = 1u - buffer;
            }
            if (block.is_there) {
                put(block, buffer, values);
            }
            if (BLOCKS > WORKGROUP && other.is_there) {
                put(other, buffer, others);
            }
            workgroupBarrier();
        }
        sums = multiply_step(sums, buffer, place);
    }

    let half_row = first_row + TILE_ROWS / 2u;
    let half_column = first_column + TILE_COLUMNS / 2u;
    store_blocks(lane, place, part, first_row, first_column, sums.here);
    if (LANE_COLUMNS > 4u) {
        store_blocks(lane, place, part, first_row, half_column, sums.right);
    }
    if (LANE_ROWS > 4u) {
        store_blocks(lane, place, part, half_row, first_column, sums.below);
        if (LANE_COLUMNS > 4u) {
            store_blocks(lane, place, part, half_row, half_column, sums.across);
        }
    }
}
