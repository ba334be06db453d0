// A = Q * R by Householder reflections: columns first to last - 1
//
// A       (count, rows, columns)   read by the dispatch whose first is 0
// a       (count, rows, columns)   R from the diagonal on, below it the vectors, whose first
//                                  elements are ones; what other dispatches go on with
// tau     (count, steps)           reflection k is I - tau[k] * v * transpose(v)
// grid    one workgroup per matrix; lanes share the columns, and each finds the reflection by
//         itself
// turns   (last - first) * (rows // WORKGROUP + 2 * rows + 2 * rows * (columns // WORKGROUP + 1) + 4) + rows * columns // WORKGROUP + 1
// source  Golub and Van Loan 2013, "Matrix Computations", algorithms 5.1.1 and 5.2.1; signs as
//        LAPACK's

const WORKGROUP = 64u;

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
@group(0) @binding(1) var<storage, read_write> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> tau: array<f32>;
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
            a[base + i] = load_A(base + i);
        }
    }
    storageBarrier();
    for (var k = params.first; k < params.last; k++) {
        let head = a[base + k * columns + k];
        var largest = 0.0;
        for (var i = k + 1u; i < rows; i++) {
            largest = max(largest, abs(a[base + i * columns + k]));
        }
        let is_reflected = largest > 0.0;
        largest = max(largest, abs(head));
        var squares = 0.0;
        if (is_reflected) {
            for (var i = k; i < rows; i++) {
                let part = a[base + i * columns + k] / largest;
                squares += part * part;
            }
        }
        let length = largest * sqrt(squares);
        let beta = select(head, select(length, -length, head >= 0.0), is_reflected);
        let factor = select(0.0, (beta - head) / beta, is_reflected);
        storageBarrier();
        if (is_reflected) {
            for (var i = k + 1u + lane; i < rows; i += WORKGROUP) {
                a[base + i * columns + k] /= head - beta;
            }
        }
        if (lane == 0u) {
            a[base + k * columns + k] = beta;
            tau[matrix * params.steps + k] = factor;
        }
        storageBarrier();
        for (var j = k + 1u + lane; j < columns; j += WORKGROUP) {
            var along = a[base + k * columns + j];
            for (var i = k + 1u; i < rows; i++) {
                along += a[base + i * columns + k] * a[base + i * columns + j];
            }
            along *= factor;
            a[base + k * columns + j] -= along;
            for (var i = k + 1u; i < rows; i++) {
                a[base + i * columns + j] -= a[base + i * columns + k] * along;
            }
        }
        storageBarrier();
    }
}
