// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]        for ROWS rows i, 1 to 4
//
// For b whose columns are contiguous: neighbouring lanes read neighbouring columns.
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z %
//       batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, rows, columns)    contiguous
// grid  one workgroup per (batch, 32 columns); 8 groups of 32 lanes share the depth

const ROWS = 1u;
const HAS_BIAS = false;

const WORKGROUP = 256u;
const COLUMNS = 32u;
const SLICES = WORKGROUP / COLUMNS;
// Where a row's sums lie; rows that are not there lie where the last one does, and are never
// written.
const ROW_1 = min(1u, ROWS - 1u) * WORKGROUP;
const ROW_2 = min(2u, ROWS - 1u) * WORKGROUP;
const ROW_3 = min(3u, ROWS - 1u) * WORKGROUP;

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

var<workgroup> partial: array<f32, ROWS * WORKGROUP>;

fn dot_row(at: vec4<u32>, weights: vec4<f32>, inside: vec4<bool>) -> f32 {
    let values = vec4<f32>(load_a(at.x), load_a(at.y), load_a(at.z), load_a(at.w));
    let products = select(vec4<f32>(), values * weights, inside);
    return (products.x + products.y) + (products.z + products.w);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let column_groups = (params.columns + COLUMNS - 1u) / COLUMNS;
    let column = (group % column_groups) * COLUMNS + lane % COLUMNS;
    let batch = group / column_groups;
    let outer = batch / params.batch_inner;
    let inner = batch % params.batch_inner;
    let a_base = outer * params.a_outer + inner * params.a_inner;
    let b_base = outer * params.b_outer + inner * params.b_inner;

    // Sums are named, not an array: an array indexed in a loop would live in memory. Four loads are
    // in flight at a time; what lies past the end counts as zero.
    var sums = vec4<f32>();
    if (column < params.columns) {
        let column_base = b_base + column * params.b_column;
        for (var first = lane / COLUMNS; first < params.depth; first += 4u * SLICES) {
            let l = vec4<u32>(first, first + SLICES, first + 2u * SLICES, first + 3u * SLICES);
            let inside = l < vec4<u32>(params.depth);
            let safe = min(l, vec4<u32>(params.depth - 1u));
            let at_b = column_base + safe * params.b_depth;
            let weights = vec4<f32>(load_b(at_b.x), load_b(at_b.y), load_b(at_b.z), load_b(at_b.w));
            let at_a = a_base + safe * params.a_depth;
            sums.x += dot_row(at_a, weights, inside);
            if (ROWS > 1u) { sums.y += dot_row(at_a + params.a_row, weights, inside); }
            if (ROWS > 2u) { sums.z += dot_row(at_a + 2u * params.a_row, weights, inside); }
            if (ROWS > 3u) { sums.w += dot_row(at_a + 3u * params.a_row, weights, inside); }
        }
    }
    partial[lane] = sums.x;
    if (ROWS > 1u) { partial[ROW_1 + lane] = sums.y; }
    if (ROWS > 2u) { partial[ROW_2 + lane] = sums.z; }
    if (ROWS > 3u) { partial[ROW_3 + lane] = sums.w; }
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width >= COLUMNS; width = width / 2u) {
        if (lane < width) {
            for (var row = 0u; row < ROWS; row++) {
                partial[row * WORKGROUP + lane] += partial[row * WORKGROUP + lane + width];
            }
        }
        workgroupBarrier();
    }
    if (lane < COLUMNS && column < params.columns) {
        for (var row = 0u; row < ROWS; row++) {
            if (row < params.rows) {
                var value = partial[row * WORKGROUP + lane];
                if (HAS_BIAS) {
                    value += load_bias(column);
                }
                store_out((batch * params.rows + row) * params.columns + column, value);
            }
        }
    }
}
