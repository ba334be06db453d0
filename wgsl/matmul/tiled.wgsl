// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z % batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, rows, columns)    contiguous
// grid  one workgroup per (batch, tile of 32 * ROW_BLOCKS rows, tile of 64 columns); 128 lanes as 8 x 16,
//       each with 4 * ROW_BLOCKS rows by 4 columns in registers; steps of 16 in depth through workgroup memory
//
// Both tiles lie depth-major as vec4s, padded by one against bank conflicts. *_DEPTH_FIRST says that neighbouring
// lanes should load neighbours in depth (the stride there is the small one); it changes speed, never the result.

const ROW_BLOCKS = 2u;
const HAS_BIAS = false;
const A_DEPTH_FIRST = true;
const B_DEPTH_FIRST = false;

const WORKGROUP = 128u;
const STEP = 16u;
const A_VECTORS = 8u * ROW_BLOCKS;
const B_VECTORS = 16u;
const A_PITCH = A_VECTORS + 1u;
const B_PITCH = B_VECTORS + 1u;

struct Params {
    a_offset: u32,
    b_offset: u32,
    bias_offset: u32,
    groups: u32,
    rows: u32,
    columns: u32,
    depth: u32,
    batch_inner: u32,
    a_outer: u32,
    a_inner: u32,
    a_row: u32,
    a_depth: u32,
    b_outer: u32,
    b_inner: u32,
    b_depth: u32,
    b_column: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_a(i: u32) -> f32 { return a[params.a_offset + i]; }
fn load_b(i: u32) -> f32 { return b[params.b_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> a_tile: array<vec4<f32>, STEP * A_PITCH>;
var<workgroup> b_tile: array<vec4<f32>, STEP * B_PITCH>;

fn a_at(base: u32, row: u32, l: u32) -> f32 {
    if (row < params.rows && l < params.depth) {
        return load_a(base + row * params.a_row + l * params.a_depth);
    }
    return 0.0;
}

fn b_at(base: u32, l: u32, column: u32) -> f32 {
    if (column < params.columns && l < params.depth) {
        return load_b(base + l * params.b_depth + column * params.b_column);
    }
    return 0.0;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let column_tiles = (params.columns + 63u) / 64u;
    let row_tiles = (params.rows + 32u * ROW_BLOCKS - 1u) / (32u * ROW_BLOCKS);
    let first_column = (group % column_tiles) * 64u;
    let first_row = (group / column_tiles % row_tiles) * 32u * ROW_BLOCKS;
    let batch = group / (column_tiles * row_tiles);
    let a_base = batch / params.batch_inner * params.a_outer + batch % params.batch_inner * params.a_inner;
    let b_base = batch / params.batch_inner * params.b_outer + batch % params.batch_inner * params.b_inner;
    let lane_row = lane / 16u;
    let lane_column = lane % 16u;

    var sums: array<vec4<f32>, 4u * ROW_BLOCKS>;
    for (var start = 0u; start < params.depth; start += STEP) {
        for (var slot = lane; slot < STEP * A_VECTORS; slot += WORKGROUP) {
            let l = select(slot / A_VECTORS, slot % STEP, A_DEPTH_FIRST);
            let vector = select(slot % A_VECTORS, slot / STEP, A_DEPTH_FIRST);
            let row = first_row + vector * 4u;
            a_tile[l * A_PITCH + vector] = vec4<f32>(
                a_at(a_base, row, start + l), a_at(a_base, row + 1u, start + l),
                a_at(a_base, row + 2u, start + l), a_at(a_base, row + 3u, start + l));
        }
        for (var slot = lane; slot < STEP * B_VECTORS; slot += WORKGROUP) {
            let l = select(slot / B_VECTORS, slot % STEP, B_DEPTH_FIRST);
            let vector = select(slot % B_VECTORS, slot / STEP, B_DEPTH_FIRST);
            let column = first_column + vector * 4u;
            b_tile[l * B_PITCH + vector] = vec4<f32>(
                b_at(b_base, start + l, column), b_at(b_base, start + l, column + 1u),
                b_at(b_base, start + l, column + 2u), b_at(b_base, start + l, column + 3u));
        }
        workgroupBarrier();
        for (var l = 0u; l < STEP; l++) {
            let right = b_tile[l * B_PITCH + lane_column];
            for (var block = 0u; block < ROW_BLOCKS; block++) {
                let left = a_tile[l * A_PITCH + lane_row + 8u * block];
                sums[4u * block] = fma(vec4<f32>(left.x), right, sums[4u * block]);
                sums[4u * block + 1u] = fma(vec4<f32>(left.y), right, sums[4u * block + 1u]);
                sums[4u * block + 2u] = fma(vec4<f32>(left.z), right, sums[4u * block + 2u]);
                sums[4u * block + 3u] = fma(vec4<f32>(left.w), right, sums[4u * block + 3u]);
            }
        }
        workgroupBarrier();
    }

    for (var i = 0u; i < 4u * ROW_BLOCKS; i++) {
        let row = first_row + (lane_row + 8u * (i / 4u)) * 4u + i % 4u;
        for (var j = 0u; j < 4u; j++) {
            let column = first_column + lane_column * 4u + j;
            if (row < params.rows && column < params.columns) {
                var value = sums[i][j];
                if (HAS_BIAS) {
                    value += load_bias(column);
                }
                store_out((batch * params.rows + row) * params.columns + column, value);
            }
        }
    }
}
