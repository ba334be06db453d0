// B = A * V with orthogonal columns, V orthonormal, by Jacobi rotations of all pairs of columns:
// rounds first to last - 1, of side - 1 in a sweep (side is taken as even)
//
// A      (count, tall, side), with TRANSPOSED (count, side, tall), read by the dispatch whose first
//        is 0
// B      (count, tall, side)   what other dispatches go on with; A is divided by the scale
// V      (count, side, side)
// scale  (count)               a power of 2 near the largest element
// grid   one workgroup per matrix; each lane rotates a pair of columns, which no other has in
//        the round
// turns  (last - first) * (((side + 1) // 2 // WORKGROUP + 1) * (2 * tall + side + 1) + 1) + 3 * (tall * side // WORKGROUP) + WORKGROUP + 8
// source Hestenes 1958, "Inversion of matrices by biorthogonalization"; Demmel and Veselic 1992,
//        "Jacobi's
//        method is more accurate than QR"

const WORKGROUP = 64u;
const TRANSPOSED = false;

struct Params {
    A_offset: u32,
    count: u32,
    tall: u32,
    side: u32,
    first: u32,
    last: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read_write> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> V: array<f32>;
@group(0) @binding(3) var<storage, read_write> scale: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }

fn element(matrix: u32, t: u32) -> f32 {
    let side = params.side;
    return load_A(
        matrix * params.tall * side + select(t, t % side * params.tall + t / side, TRANSPOSED)
    );
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let matrix = id.y * count.x + id.x;
    if (matrix >= params.count) {
        return;
    }
    let tall = params.tall;
    let side = params.side;
    let base = matrix * tall * side;
    let own = matrix * side * side;
    if (params.first == 0u) {
        var bound = 0.0;
        for (var t = lane; t < tall * side; t += WORKGROUP) {
            bound = max(bound, abs(element(matrix, t)));
        }
        let power = power_below(workgroup_max(lane, bound));
        if (lane == 0u) {
            scale[matrix] = power;
        }
        for (var t = lane; t < tall * side; t += WORKGROUP) {
            B[base + t] = element(matrix, t) / power;
        }
        for (var t = lane; t < side * side; t += WORKGROUP) {
            V[own + t] = select(0.0, 1.0, t / side == t % side);
        }
    }
    storageBarrier();
    for (var round = params.first; round < params.last; round++) {
        for (var pair = lane; pair < (side + 1u) / 2u; pair += WORKGROUP) {
            let columns = column_pair(round, pair, side);
            if (max(columns.x, columns.y) >= side) {
                continue;
            }
            let p = base + columns.x;
            let q = base + columns.y;
            var first = 0.0;
            var second = 0.0;
            var both = 0.0;
            for (var i = 0u; i < tall * side; i += side) {
                first += B[p + i] * B[p + i];
                second += B[q + i] * B[q + i];
                both += B[p + i] * B[q + i];
            }
            // Columns that are orthogonal to the last place are left alone.
            if (abs(both) > 6e-8 * sqrt(first) * sqrt(second)) {
                let angle = jacobi_angle(first, second, both);
                for (var i = 0u; i < tall * side; i += side) {
                    let both_columns = jacobi_turn(B[p + i], B[q + i], angle);
                    B[p + i] = both_columns.x;
                    B[q + i] = both_columns.y;
                }
                for (var i = own; i < own + side * side; i += side) {
                    let both_columns = jacobi_turn(V[columns.x + i], V[columns.y + i], angle);
                    V[columns.x + i] = both_columns.x;
                    V[columns.y + i] = both_columns.y;
                }
            }
        }
        storageBarrier();
    }
}
