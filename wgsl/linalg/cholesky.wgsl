// A = L * transpose(L): columns first to last - 1 of the lower triangle L; info is 0, or the order
// of the first leading minor that is not positive, behind which a pivot of 1 stands
//
// A      (count, rows, rows)   the lower triangle is read, by the dispatch whose first is 0
// L      (count, rows, rows)   what other dispatches go on with
// info   (count)
// grid   one workgroup per matrix; lanes share the elements behind a column
// turns  (last - first) * (rows * rows // WORKGROUP + rows // WORKGROUP + 4) + rows * rows // WORKGROUP + 1
// source Golub and Van Loan 2013, "Matrix Computations", algorithm 4.2.2 (outer products)

const WORKGROUP = 64u;

struct Params {
    A_offset: u32,
    count: u32,
    rows: u32,
    first: u32,
    last: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read_write> L: array<f32>;
@group(0) @binding(2) var<storage, read_write> info: array<i32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }

// By its bits, since compilers may take NaN for any number.
fn is_positive(x: f32) -> bool { return bitcast<u32>(x) - 1u < 0x7f800000u; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let matrix = id.y * count.x + id.x;
    if (matrix >= params.count) {
        return;
    }
    let rows = params.rows;
    let base = matrix * rows * rows;
    if (params.first == 0u) {
        for (var i = lane; i < rows * rows; i += WORKGROUP) {
            L[base + i] = select(0.0, load_A(base + i), i % rows <= i / rows);
        }
        if (lane == 0u) {
            info[matrix] = 0;
        }
    }
    storageBarrier();
    for (var k = params.first; k < params.last; k++) {
        let pivot = L[base + k * rows + k];
        let is_good = is_positive(pivot);
        let root = sqrt(select(1.0, pivot, is_good));
        for (var i = k + 1u + lane; i < rows; i += WORKGROUP) {
            L[base + i * rows + k] /= root;
        }
        storageBarrier();
        if (lane == 0u) {
            L[base + k * rows + k] = root;
            if (!is_good && info[matrix] == 0) {
                info[matrix] = i32(k + 1u);
            }
        }
        let size = rows - k - 1u;
        for (var t = lane; t < size * size; t += WORKGROUP) {
            let row = k + 1u + t / size;
            let column = k + 1u + t % size;
            if (column <= row) {
                L[base + row * rows + column] -=
                    L[base + row * rows + k] * L[base + column * rows + k];
            }
        }
        storageBarrier();
    }
}
