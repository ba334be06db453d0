// out[.., r, .., c] = x[.., r, .., c]     where neighbours in r lie side by side in x, in c in out
//
// For GPUs: tiles change places in workgroup memory, so that loads and stores are of neighbours. Two more axes
// at most may lie anywhere.
//
// x     any strides, which wrap as two's complement
// out   contiguous
// grid  one workgroup per tile of TILE by TILE, in three dimensions: tiles of columns, tiles of rows,
//       places of the other axes

alias T = f32;
const TILE = 32u;
const WORKGROUP = 256u;
// Lanes that have a column in common are so many rows apart.
const APART = WORKGROUP / TILE;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    row_step: u32,
    column_step: u32,
    out_row_step: u32,
    inner: u32,
    outer_step: u32,
    inner_step: u32,
    out_outer_step: u32,
    out_inner_step: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

var<workgroup> tile: array<T, TILE * (TILE + 1u)>;

fn fetch(source: u32, row: u32, column: u32, slot: u32) {
    if (row < params.rows && column < params.columns) {
        tile[slot] = load_x(source + row * params.row_step + column * params.column_step);
    }
}

fn put(to: u32, row: u32, column: u32, slot: u32) {
    if (row < params.rows && column < params.columns) {
        store_out(to + row * params.out_row_step + column, tile[slot]);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let outer = id.z / params.inner;
    let inner = id.z % params.inner;
    let near = lane % TILE;
    let far = lane / TILE;
    let source = outer * params.outer_step + inner * params.inner_step;
    let row = id.y * TILE + near;
    let first = id.x * TILE + far;
    let slot = far * (TILE + 1u) + near;
    fetch(source, row, first, slot);
    fetch(source, row, first + APART, slot + APART * (TILE + 1u));
    fetch(source, row, first + 2u * APART, slot + 2u * APART * (TILE + 1u));
    fetch(source, row, first + 3u * APART, slot + 3u * APART * (TILE + 1u));
    workgroupBarrier();
    let to = outer * params.out_outer_step + inner * params.out_inner_step;
    let column = id.x * TILE + near;
    let top = id.y * TILE + far;
    let other = near * (TILE + 1u) + far;
    put(to, top, column, other);
    put(to, top + APART, column, other + APART);
    put(to, top + 2u * APART, column, other + 2u * APART);
    put(to, top + 3u * APART, column, other + 3u * APART);
}
