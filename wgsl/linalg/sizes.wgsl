// sizes[column] = |B[:, column]|, of B = A * V; with SYMMETRIC V[:, column] * A * V[:, column]
//
// A      (count, side, side)   read with SYMMETRIC, one triangle of it
// B      (count, tall, side)   read without
// V      (count, side, side)   read with SYMMETRIC
// sizes  (count, side)
// grid   one workgroup per column; lanes share the rows
// turns  (tall // WORKGROUP + 1) * (SYMMETRIC * side + 1) + 32

const WORKGROUP = 64u;
const SYMMETRIC = false;
const UPPER = false;

struct Params {
    A_offset: u32,
    B_offset: u32,
    V_offset: u32,
    groups: u32,
    tall: u32,
    side: u32,
}

@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read> V: array<f32>;
@group(0) @binding(3) var<storage, read_write> sizes: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_B(i: u32) -> f32 { return B[params.B_offset + i]; }
fn load_V(i: u32) -> f32 { return V[params.V_offset + i]; }
fn store_sizes(i: u32, value: f32) { sizes[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let side = params.side;
    let matrix = group / side;
    let column = group % side;
    let base = matrix * params.tall * side;
    var sum = 0.0;
    for (var i = lane; i < params.tall; i += WORKGROUP) {
        if (SYMMETRIC) {
            var row = 0.0;
            for (var j = 0u; j < side; j++) {
                let low = max(i, j);
                let high = min(i, j);
                row += load_A(base + select(low, high, UPPER) * side + select(high, low, UPPER))
                    * load_V(base + j * side + column);
            }
            sum += row * load_V(base + i * side + column);
        } else {
            let value = load_B(base + i * side + column);
            sum += value * value;
        }
    }
    sum = workgroup_sum(lane, sum);
    if (lane == 0u) {
        store_sizes(group, select(sqrt(abs(sum)), sum, SYMMETRIC));
    }
}
