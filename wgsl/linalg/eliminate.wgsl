// P * A = L * U: columns first to last - 1, L below the diagonal and U from it on
//
// A       (count, rows, columns)   read by the dispatch whose first is 0
// LU      (count, rows, columns)   what other dispatches go on with
// pivots  (count, steps)           the row that row k was exchanged with, counted from 1
// info    (count)                  0, or the number of the first pivot that is 0
// grid    one workgroup per matrix; lanes share the elements behind a column, and each looks for
//         the pivot by itself
// turns   (last - first) * (rows * columns // WORKGROUP + (rows + columns) // WORKGROUP + rows + 6) + rows * columns // WORKGROUP + 1
// source  Golub and Van Loan 2013, "Matrix Computations", algorithm 3.4.1

const WORKGROUP = 64u;
const PIVOT = true;

struct Params {
    A_offset: u32,
    count: u32,
    rows: u32,
    columns: u32,
    steps: u32,
    first: u32,
    last: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read_write> LU: array<f32>;
@group(0) @binding(2) var<storage, read_write> pivots: array<i32>;
@group(0) @binding(3) var<storage, read_write> info: array<i32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let matrix = id.y * count.x + id.x;
    if (matrix >= params.count) {
        return;
    }
    let rows = params.rows;
    let columns = params.columns;
    let base = matrix * rows * columns;
    if (params.first == 0u) {
        for (var i = lane; i < rows * columns; i += WORKGROUP) {
            LU[base + i] = load_A(base + i);
        }
        if (lane == 0u) {
            info[matrix] = 0;
        }
    }
    storageBarrier();
    for (var k = params.first; k < params.last; k++) {
        var found = k;
        if (PIVOT) {
            var largest = abs(LU[base + k * columns + k]);
            for (var i = k + 1u; i < rows; i++) {
                let size = abs(LU[base + i * columns + k]);
                if (size > largest) {
                    largest = size;
                    found = i;
                }
            }
        }
        storageBarrier();
        if (found != k) {
            for (var j = lane; j < columns; j += WORKGROUP) {
                let above = LU[base + k * columns + j];
                LU[base + k * columns + j] = LU[base + found * columns + j];
                LU[base + found * columns + j] = above;
            }
        }
        if (lane == 0u) {
            pivots[matrix * params.steps + k] = i32(found + 1u);
        }
        storageBarrier();
        let head = LU[base + k * columns + k];
        if (head == 0.0) {
            if (lane == 0u && info[matrix] == 0) {
                info[matrix] = i32(k + 1u);
            }
        } else {
            for (var i = k + 1u + lane; i < rows; i += WORKGROUP) {
                LU[base + i * columns + k] /= head;
            }
        }
        storageBarrier();
        let below = rows - k - 1u;
        let behind = columns - k - 1u;
        for (var t = lane; t < below * behind; t += WORKGROUP) {
            let row = base + (k + 1u + t / behind) * columns;
            let column = k + 1u + t % behind;
            LU[row + column] -= LU[row + k] * LU[base + k * columns + column];
        }
        storageBarrier();
    }
}
