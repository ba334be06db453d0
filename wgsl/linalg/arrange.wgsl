// Columns in order of their sizes: values[r] = scale * sizes[j], normal[:, r] = B[:, j] / sizes[j],
// vectors[:, r] = V[:, j], where j is the column with the size of rank r. Falling sizes; with
// SYMMETRIC rising ones, which have no scale, and no normal. All is NaN where a size is not finite.
//
// sizes    (count, side)
// scale    (count)
// B        (count, tall, side)
// V        (count, side, side)
// values   (count, side)
// normal   (count, tall, side)
// vectors  (count, side, side)   with TRANSPOSED vectors are rows
// grid     one invocation per column
// turns    2 * side + tall

const WORKGROUP = 64u;
const SYMMETRIC = false;
const TRANSPOSED = false;

struct Params {
    sizes_offset: u32,
    scale_offset: u32,
    B_offset: u32,
    V_offset: u32,
    count: u32,
    tall: u32,
    side: u32,
}

@group(0) @binding(0) var<storage, read> sizes: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read> B: array<f32>;
@group(0) @binding(3) var<storage, read> V: array<f32>;
@group(0) @binding(4) var<storage, read_write> values: array<f32>;
@group(0) @binding(5) var<storage, read_write> normal: array<f32>;
@group(0) @binding(6) var<storage, read_write> vectors: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_sizes(i: u32) -> f32 { return sizes[params.sizes_offset + i]; }
fn load_scale(i: u32) -> f32 { return scale[params.scale_offset + i]; }
fn load_B(i: u32) -> f32 { return B[params.B_offset + i]; }
fn load_V(i: u32) -> f32 { return V[params.V_offset + i]; }
fn store_values(i: u32, value: f32) { values[i] = value; }
fn store_normal(i: u32, value: f32) { normal[i] = value; }
fn store_vectors(i: u32, value: f32) { vectors[i] = value; }

fn or_nan(x: f32, is_lost: bool) -> f32 {
    return bitcast<f32>(select(bitcast<u32>(x), 0x7fc00000u, is_lost));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let at = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (at >= params.count * params.side) {
        return;
    }
    let side = params.side;
    let matrix = at / side;
    let column = at % side;
    let own = load_sizes(at);
    var rank = 0u;
    var is_lost = false;
    for (var j = 0u; j < side; j++) {
        let other = load_sizes(matrix * side + j);
        is_lost = is_lost || (bitcast<u32>(other) & 0x7f800000u) == 0x7f800000u;
        let is_before = select(other > own, other < own, SYMMETRIC);
        if (is_before || (other == own && j < column)) {
            rank += 1u;
        }
    }
    rank = select(rank, column, is_lost);
    let value = select(own * load_scale(matrix), own, SYMMETRIC);
    store_values(matrix * side + rank, or_nan(value, is_lost));
    for (var i = 0u; i < side; i++) {
        let to = select(i * side + rank, rank * side + i, TRANSPOSED);
        let part = load_V((matrix * side + i) * side + column);
        store_vectors(matrix * side * side + to, or_nan(part, is_lost));
    }
    if (!SYMMETRIC) {
        for (var i = 0u; i < params.tall; i++) {
            var part = 0.0;
            if (own > 0.0) {
                part = load_B((matrix * params.tall + i) * side + column) / own;
            }
            store_normal((matrix * params.tall + i) * side + rank, or_nan(part, is_lost));
        }
    }
}
