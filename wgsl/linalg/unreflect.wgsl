// Q, the product of Householder reflections, the last of them applied first: steps first to
// last - 1; and R, the upper triangle that stands above the vectors
//
// a      (count, rows, columns)   of linalg/reflect
// tau    (count, steps)
// Q      (count, rows, wide)      what other dispatches go on with; with TRANSPOSED (count,
//                                 wide, rows)
// R      (count, tall, columns)   written with HAS_R, by the dispatch whose first is 0
// grid   one invocation per matrix and column of Q and R
// turns  (last - first) * (2 * rows + 1) + 2 * rows

const WORKGROUP = 64u;
const TRANSPOSED = false;
// Columns are turned round where R has a negative diagonal, as if there were ones.
const SIGNED = false;
const HAS_R = true;

struct Params {
    a_offset: u32,
    tau_offset: u32,
    count: u32,
    rows: u32,
    columns: u32,
    steps: u32,
    wide: u32,
    tall: u32,
    first: u32,
    last: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> tau: array<f32>;
@group(0) @binding(2) var<storage, read_write> Q: array<f32>;
@group(0) @binding(3) var<storage, read_write> R: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_a(i: u32) -> f32 { return a[params.a_offset + i]; }
fn load_tau(i: u32) -> f32 { return tau[params.tau_offset + i]; }
fn store_R(i: u32, value: f32) { R[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let at = (id.y * count.x + id.x) * WORKGROUP + lane;
    let lines = max(params.wide, params.columns);
    let matrix = at / lines;
    let column = at % lines;
    if (matrix >= params.count) {
        return;
    }
    let rows = params.rows;
    let columns = params.columns;
    let base = matrix * rows * columns;
    if (HAS_R && params.first == 0u && column < columns) {
        for (var i = 0u; i < params.tall; i++) {
            var value = 0.0;
            if (i <= column) {
                value = load_a(base + i * columns + column);
            }
            store_R((matrix * params.tall + i) * columns + column, value);
        }
    }
    if (column >= params.wide) {
        return;
    }
    let start = matrix * rows * params.wide + select(column, column * rows, TRANSPOSED);
    let pitch = select(params.wide, 1u, TRANSPOSED);
    if (params.first == 0u) {
        var one = 1.0;
        if (SIGNED && column < params.steps && load_a(base + column * columns + column) < 0.0) {
            one = -1.0;
        }
        for (var i = 0u; i < rows; i++) {
            Q[start + i * pitch] = select(0.0, one, i == column);
        }
    }
    for (var step = params.first; step < params.last; step++) {
        let k = params.steps - 1u - step;
        // What stands above the reflection stays as it is, so of earlier columns nothing changes.
        if (k <= column) {
            var along = Q[start + k * pitch];
            for (var i = k + 1u; i < rows; i++) {
                along += load_a(base + i * columns + k) * Q[start + i * pitch];
            }
            along *= load_tau(matrix * params.steps + k);
            Q[start + k * pitch] -= along;
            for (var i = k + 1u; i < rows; i++) {
                Q[start + i * pitch] -= load_a(base + i * columns + k) * along;
            }
        }
    }
}
