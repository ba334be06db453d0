// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]        for ROWS rows i, 1 to 4
//
// For b whose depth is contiguous, like a weight (out, in): the matrix is read once, in order, for
// all rows.
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z %
//       batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, rows, columns)    contiguous
// grid  one workgroup per (batch, 4 columns); lanes stride over the depth

const ROWS = 1u;
const HAS_BIAS = false;

const WORKGROUP = 64u;
const COLUMNS = 4u;
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

var<workgroup> partial: array<vec4<f32>, ROWS * WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let column_groups = (params.columns + COLUMNS - 1u) / COLUMNS;
    let first = (group % column_groups) * COLUMNS;
    let batch = group / column_groups;
    let outer = batch / params.batch_inner;
    let inner = batch % params.batch_inner;
    let a_base = outer * params.a_outer + inner * params.a_inner;
    let b_base = outer * params.b_outer + inner * params.b_inner;
    // columns past the end repeat the last one and are not stored
    let last = params.columns - 1u;
    let starts = b_base + params.b_column * vec4<u32>(
        first, min(first + 1u, last), min(first + 2u, last), min(first + 3u, last));

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    for (var l = lane; l < params.depth; l += WORKGROUP) {
        let at = l * params.b_depth;
        let weights = vec4<f32>(
            load_b(starts.x + at), load_b(starts.y + at), load_b(starts.z + at),
                load_b(starts.w + at));
        let place = a_base + l * params.a_depth;
        sum_0 = fma(vec4<f32>(load_a(place)), weights, sum_0);
        if (ROWS > 1u) { sum_1 = fma(vec4<f32>(load_a(place + params.a_row)), weights, sum_1); }
        if (ROWS > 2u) {
            sum_2 = fma(vec4<f32>(load_a(place + 2u * params.a_row)), weights, sum_2);
        }
        if (ROWS > 3u) {
            sum_3 = fma(vec4<f32>(load_a(place + 3u * params.a_row)), weights, sum_3);
        }
    }
    partial[lane] = sum_0;
    if (ROWS > 1u) { partial[ROW_1 + lane] = sum_1; }
    if (ROWS > 2u) { partial[ROW_2 + lane] = sum_2; }
    if (ROWS > 3u) { partial[ROW_3 + lane] = sum_3; }
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            for (var row = 0u; row < ROWS; row++) {
                partial[row * WORKGROUP + lane] += partial[row * WORKGROUP + lane + width];
            }
        }
        workgroupBarrier();
    }
    if (lane < ROWS * COLUMNS) {
        let row = lane / COLUMNS;
        let column = first + lane % COLUMNS;
        if (row < params.rows && column < params.columns) {
            var value = partial[row * WORKGROUP][lane % COLUMNS];
            if (HAS_BIAS) {
                value += load_bias(column);
            }
            store_out((batch * params.rows + row) * params.columns + column, value);
        }
    }
}
