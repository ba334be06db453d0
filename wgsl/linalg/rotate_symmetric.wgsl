// B = transpose(V) * A * V ever more diagonal, V orthonormal, by Jacobi rotations of all pairs of
// rows and columns: rounds first to last - 1, of side - 1 in a sweep (side is taken as even)
//
// A      (count, side, side)   one triangle is read, by the dispatch whose first is 0
// B      (count, side, side)   what other dispatches go on with
// V      (count, side, side)
// scale  (count)               a power of 2 near the largest element, by which A is divided
// grid   one workgroup per matrix; lanes share the pairs, then the elements that these turn
// turns  (last - first) * (PAIRS // WORKGROUP + 2 * (PAIRS * side // WORKGROUP) + 4) + 2 * (side * side // WORKGROUP) + WORKGROUP + 8
// source Golub and Van Loan 2013, "Matrix Computations", section 8.5.5

const WORKGROUP = 64u;
const PAIRS = 1u;
const UPPER = false;

struct Params {
    A_offset: u32,
    count: u32,
    side: u32,
    first: u32,
    last: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read_write> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> V: array<f32>;
@group(0) @binding(3) var<storage, read_write> scale: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

// The sine of each pair's rotation, and the tangent of half its angle.
var<workgroup> angles: array<vec2<f32>, PAIRS>;

fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }

fn element(matrix: u32, t: u32) -> f32 {
    let low = max(t / params.side, t % params.side);
    let high = min(t / params.side, t % params.side);
    return load_A(
        (matrix * params.side + select(low, high, UPPER)) * params.side + select(high, low, UPPER)
    );
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let matrix = id.y * count.x + id.x;
    if (matrix >= params.count) {
        return;
    }
    let side = params.side;
    let base = matrix * side * side;
    if (params.first == 0u) {
        var bound = 0.0;
        for (var t = lane; t < side * side; t += WORKGROUP) {
            bound = max(bound, abs(element(matrix, t)));
        }
        let power = power_below(workgroup_max(lane, bound));
        if (lane == 0u) {
            scale[matrix] = power;
        }
        for (var t = lane; t < side * side; t += WORKGROUP) {
            B[base + t] = element(matrix, t) / power;
            V[base + t] = select(0.0, 1.0, t / side == t % side);
        }
    }
    storageBarrier();
    for (var round = params.first; round < params.last; round++) {
        for (var pair = lane; pair < PAIRS; pair += WORKGROUP) {
            let at = column_pair(round, pair, side);
            angles[pair] = vec2<f32>(0.0);
            if (max(at.x, at.y) < side) {
                let both = B[base + at.x * side + at.y];
                // What is less is rounding of elements that are up to 2.
                if (abs(both) > 1e-8) {
                    let first = B[base + at.x * (side + 1u)];
                    angles[pair] = jacobi_angle(first, B[base + at.y * (side + 1u)], both);
                }
            }
        }
        workgroupBarrier();
        for (var t = lane; t < PAIRS * side; t += WORKGROUP) {
            let at = column_pair(round, t / side, side);
            if (max(at.x, at.y) < side) {
                let p = base + at.x * side + t % side;
                let q = base + at.y * side + t % side;
                let rows = jacobi_turn(B[p], B[q], angles[t / side]);
                B[p] = rows.x;
                B[q] = rows.y;
            }
        }
        storageBarrier();
        for (var t = lane; t < PAIRS * side; t += WORKGROUP) {
            let at = column_pair(round, t % PAIRS, side);
            if (max(at.x, at.y) < side) {
                let p = base + t / PAIRS * side + at.x;
                let q = base + t / PAIRS * side + at.y;
                let columns = jacobi_turn(B[p], B[q], angles[t % PAIRS]);
                B[p] = columns.x;
                B[q] = columns.y;
                let vectors = jacobi_turn(V[p], V[q], angles[t % PAIRS]);
                V[p] = vectors.x;
                V[q] = vectors.y;
            }
        }
        storageBarrier();
        workgroupBarrier();
    }
}
