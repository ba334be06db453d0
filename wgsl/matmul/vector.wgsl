// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]        for a few rows i, at most ROWS
//
// For b whose depth is contiguous, like a weight (out, in): the matrix is read once, in order, for all rows.
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z % batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, rows, columns)    contiguous
// grid  one workgroup per (batch, 4 columns); lanes stride over the depth

const ROWS = 1u;
const HAS_BIAS = false;

const WORKGROUP = 64u;
const COLUMNS = 4u;

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
    let a_base = batch / params.batch_inner * params.a_outer + batch % params.batch_inner * params.a_inner;
    let b_base = batch / params.batch_inner * params.b_outer + batch % params.batch_inner * params.b_inner;
    // columns past the end repeat the last one and are not stored
    let last = params.columns - 1u;
    let starts = b_base + params.b_column * vec4<u32>(
        first, min(first + 1u, last), min(first + 2u, last), min(first + 3u, last));

    var sums: array<vec4<f32>, ROWS>;
    for (var l = lane; l < params.depth; l += WORKGROUP) {
        let at = l * params.b_depth;
        let weights = vec4<f32>(
            load_b(starts.x + at), load_b(starts.y + at), load_b(starts.z + at), load_b(starts.w + at));
        for (var row = 0u; row < ROWS; row++) {
            if (row < params.rows) {
                let value = load_a(a_base + row * params.a_row + l * params.a_depth);
                sums[row] = fma(vec4<f32>(value), weights, sums[row]);
            }
        }
    }
    for (var row = 0u; row < ROWS; row++) {
        partial[row * WORKGROUP + lane] = sums[row];
    }
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
