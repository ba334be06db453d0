// out[z, i, j] = sum(a[z, i, l] * b[z, l, j] for l) + bias[j]        for ROWS rows i, 1 to 8
//
// For b whose depth is contiguous, like a weight (out, in): the matrix is read once, in order, for
// all rows.
//
// a     (batch, rows, depth)      any strides, in elements; batch z = (z / batch_inner, z %
//       batch_inner)
// b     (batch, depth, columns)   any strides; a stride 0 repeats a batch
// bias  (columns)                 read only with HAS_BIAS
// out   (batch, PARTS, rows, columns)  contiguous; part p is the sum over the p-th part of the
//       depth, so with PARTS = 1 out is the product, else combine.wgsl adds the parts
// grid  one workgroup per (batch, part, 4 columns); lanes stride over the depth, 4 elements each
// fuses -> out
// turns depth // STRIDE // PARTS + 128
//
// With B_FOUR the depth of b is contiguous, and its length and the other strides are multiples of 4;
// with A_FOUR those of a too: load4_* then reads four elements at once, and load_* serves only
// views that begin at another element than a fourth. Give the same values in both, or set *_FOUR to
// false. Without B_FOUR a lane's elements lie WORKGROUP apart, so that neighbouring lanes read
// neighbours.

const ROWS = 1u;
const PARTS = 1u;
const HAS_BIAS = false;
const A_FOUR = false;
const B_FOUR = false;

const WORKGROUP = 64u;
const COLUMNS = 4u;
// Between a lane's four elements, and what all lanes take at a time.
const SPREAD = select(WORKGROUP, 1u, B_FOUR);
const STRIDE = 4u * WORKGROUP;

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
fn load4_a(i: u32) -> vec4<f32> { return vec4(load_a(4*i), load_a(4*i+1), load_a(4*i+2), load_a(4*i+3)); }
fn load4_b(i: u32) -> vec4<f32> { return vec4(load_b(4*i), load_b(4*i+1), load_b(4*i+2), load_b(4*i+3)); }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> partial: array<vec4<f32>, ROWS * WORKGROUP>;

// A lane's four elements of a row of a from depth `first` on; zero from `end` on.
fn four_of_a(base: u32, first: u32, end: u32) -> vec4<f32> {
    if (A_FOUR && B_FOUR && params.a_offset % 4u == 0u) {
        return load4_a((base + first) / 4u);
    }
    let at = base + first * params.a_depth;
    let step = SPREAD * params.a_depth;
    var four = vec4<f32>(load_a(at), 0.0, 0.0, 0.0);
    if (first + SPREAD < end) { four.y = load_a(at + step); }
    if (first + 2u * SPREAD < end) { four.z = load_a(at + 2u * step); }
    if (first + 3u * SPREAD < end) { four.w = load_a(at + 3u * step); }
    return four;
}

// The same of a column of b.
fn four_of_b(base: u32, first: u32, end: u32) -> vec4<f32> {
    if (B_FOUR && params.b_offset % 4u == 0u) {
        return load4_b((base + first) / 4u);
    }
    let at = base + first * params.b_depth;
    let step = SPREAD * params.b_depth;
    var four = vec4<f32>(load_b(at), 0.0, 0.0, 0.0);
    if (first + SPREAD < end) { four.y = load_b(at + step); }
    if (first + 2u * SPREAD < end) { four.z = load_b(at + 2u * step); }
    if (first + 3u * SPREAD < end) { four.w = load_b(at + 3u * step); }
    return four;
}

fn put(row: u32, lane: u32, sum: vec4<f32>) {
    partial[row * WORKGROUP + lane] = sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * groups.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let column_groups = (params.columns + COLUMNS - 1u) / COLUMNS;
    let column = group % column_groups * COLUMNS;
    let part = group / column_groups;
    let batch = part / PARTS;
    let outer = batch / params.batch_inner;
    let inner = batch % params.batch_inner;
    let base = outer * params.a_outer + inner * params.a_inner;
    let b_base = outer * params.b_outer + inner * params.b_inner;
    let steps = (params.depth + STRIDE - 1u) / STRIDE;
    let length = (steps + PARTS - 1u) / PARTS * STRIDE;
    let begin = part % PARTS * length;
    let end = min(begin + length, params.depth);
    // columns past the end repeat the last one and are not stored
    let last = params.columns - 1u;
    let starts = b_base + params.b_column * vec4<u32>(
        column, min(column + 1u, last), min(column + 2u, last), min(column + 3u, last));

    // Sums are named, not an array: an array indexed in a loop would live in memory.
    var sum_0 = vec4<f32>();
    var sum_1 = vec4<f32>();
    var sum_2 = vec4<f32>();
    var sum_3 = vec4<f32>();
    var sum_4 = vec4<f32>();
    var sum_5 = vec4<f32>();
    var sum_6 = vec4<f32>();
    var sum_7 = vec4<f32>();
    let row = params.a_row;
    for (var l = begin + lane * select(1u, 4u, B_FOUR); l < end; l += STRIDE) {
        let weights = mat4x4<f32>(
            four_of_b(starts.x, l, end), four_of_b(starts.y, l, end),
            four_of_b(starts.z, l, end), four_of_b(starts.w, l, end));
        sum_0 += four_of_a(base, l, end) * weights;
        if (ROWS > 1u) { sum_1 += four_of_a(base + row, l, end) * weights; }
        if (ROWS > 2u) { sum_2 += four_of_a(base + 2u * row, l, end) * weights; }
        if (ROWS > 3u) { sum_3 += four_of_a(base + 3u * row, l, end) * weights; }
        if (ROWS > 4u) { sum_4 += four_of_a(base + 4u * row, l, end) * weights; }
        if (ROWS > 5u) { sum_5 += four_of_a(base + 5u * row, l, end) * weights; }
        if (ROWS > 6u) { sum_6 += four_of_a(base + 6u * row, l, end) * weights; }
        if (ROWS > 7u) { sum_7 += four_of_a(base + 7u * row, l, end) * weights; }
    }
    put(0u, lane, sum_0);
    if (ROWS > 1u) { put(1u, lane, sum_1); }
    if (ROWS > 2u) { put(2u, lane, sum_2); }
    if (ROWS > 3u) { put(3u, lane, sum_3); }
    if (ROWS > 4u) { put(4u, lane, sum_4); }
    if (ROWS > 5u) { put(5u, lane, sum_5); }
    if (ROWS > 6u) { put(6u, lane, sum_6); }
    if (ROWS > 7u) { put(7u, lane, sum_7); }
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            for (var i = 0u; i < ROWS; i++) {
                partial[i * WORKGROUP + lane] += partial[i * WORKGROUP + lane + width];
            }
        }
        workgroupBarrier();
    }
    if (lane < ROWS * COLUMNS && column + lane % COLUMNS < params.columns) {
        let i = lane / COLUMNS;
        let j = column + lane % COLUMNS;
        var value = partial[i * WORKGROUP][lane % COLUMNS];
        if (HAS_BIAS) {
            value += load_bias(j);
        }
        store_out((part * params.rows + i) * params.columns + j, value);
    }
}
