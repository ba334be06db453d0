// A * out = B, A triangular: steps first to last - 1 of the substitution, from the first row
// down, or with UPPER from the last row up
//
// A      (count, rows, rows)      its triangle is read
// B      (count, rows, columns)   read by the dispatch whose first is 0
// out    (count, rows, columns)   what other dispatches go on with
// grid   one workgroup per matrix and TILE columns; lanes share the elements behind a row
// turns  (last - first) * ((rows * TILE) // WORKGROUP + TILE // WORKGROUP + 4) + (rows * TILE) // WORKGROUP + 1

const WORKGROUP = 64u;
const TILE = 16u;
const UPPER = false;
const UNIT = false;

struct Params {
    A_offset: u32,
    B_offset: u32,
    groups: u32,
    tiles: u32,
    rows: u32,
    columns: u32,
    first: u32,
    last: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_B(i: u32) -> f32 { return B[params.B_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let rows = params.rows;
    let columns = params.columns;
    let matrix = group / params.tiles;
    let start = (group % params.tiles) * TILE;
    let wide = min(TILE, columns - start);
    let own = matrix * rows * rows;
    let base = matrix * rows * columns + start;
    if (params.first == 0u) {
        for (var t = lane; t < rows * wide; t += WORKGROUP) {
            let i = base + (t / wide) * columns + t % wide;
            out[i] = load_B(i);
        }
    }
    storageBarrier();
    for (var step = params.first; step < params.last; step++) {
        let k = select(step, rows - 1u - step, UPPER);
        if (!UNIT) {
            let head = load_A(own + k * rows + k);
            for (var j = lane; j < wide; j += WORKGROUP) {
                out[base + k * columns + j] /= head;
            }
            storageBarrier();
        }
        let left = rows - 1u - step;
        for (var t = lane; t < left * wide; t += WORKGROUP) {
            let i = select(k + 1u, 0u, UPPER) + t / wide;
            let j = t % wide;
            out[base + i * columns + j] -= load_A(own + i * rows + k) * out[base + k * columns + j];
        }
        storageBarrier();
    }
}
