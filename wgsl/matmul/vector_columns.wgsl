// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]        for a few rows i, at most ROWS
//
// For b whose columns are contiguous: neighbouring lanes read neighbouring columns.
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z % batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, rows, columns)    contiguous
// grid  one workgroup per (batch, 32 columns); 8 groups of 32 lanes share the depth

const ROWS = 1u;
const HAS_BIAS = false;

const WORKGROUP = 256u;
const COLUMNS = 32u;
const SLICES = WORKGROUP / COLUMNS;

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
    let a_base = batch / params.batch_inner * params.a_outer + batch % params.batch_inner * params.a_inner;
    let b_base = batch / params.batch_inner * params.b_outer + batch % params.batch_inner * params.b_inner;

    var sums: array<f32, ROWS>;
    if (column < params.columns) {
        for (var l = lane / COLUMNS; l < params.depth; l += SLICES) {
            let weight = load_b(b_base + l * params.b_depth + column * params.b_column);
            for (var row = 0u; row < ROWS; row++) {
                if (row < params.rows) {
                    sums[row] = fma(load_a(a_base + row * params.a_row + l * params.a_depth), weight, sums[row]);
                }
            }
        }
    }
    for (var row = 0u; row < ROWS; row++) {
        partial[row * WORKGROUP + lane] = sums[row];
    }
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
