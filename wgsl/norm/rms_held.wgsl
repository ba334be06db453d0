// out[row, c] = x[row, c] / sqrt(mean(x[row, :]^2) + eps) * weight[c]
//
// For rows that the registers of their lanes hold: every element is read once.
//
// x       (rows, columns)   contiguous; columns <= 4 * QUADS * LANES
// weight  (columns)         read only with HAS_WEIGHT
// out     (rows, columns)
// grid    one workgroup per WORKGROUP / LANES rows; LANES lanes share a row
// fuses   x -> out
// turns   256
// source  Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", equation 4
// uses    row_quads

const WORKGROUP = 64u;
const LANES = 64u;
const QUADS = 4u;
const HAS_WEIGHT = true;

struct Params {
    x_offset: u32,
    weight_offset: u32,
    rows: u32,
    columns: u32,
    eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_weight(i: u32) -> f32 { return weight[params.weight_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

fn put(base: u32, column: u32, value: f32) {
    if (column < params.columns) {
        var result = value;
        if (HAS_WEIGHT) {
            result *= load_weight(column);
        }
        store_out(base + column, result);
    }
}

fn put_quad(base: u32, columns: vec4<u32>, values: vec4<f32>) {
    put(base, columns.x, values.x);
    put(base, columns.y, values.y);
    put(base, columns.z, values.z);
    put(base, columns.w, values.w);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (WORKGROUP / LANES);
    if (first >= params.rows) {
        return;
    }
    let row = first + lane / LANES;
    let base = min(row, params.rows - 1u) * params.columns;
    let place = lane % LANES;
    let a_columns = quad_columns(place, 0u);
    let b_columns = quad_columns(place, 1u);
    let c_columns = quad_columns(place, 2u);
    let d_columns = quad_columns(place, 3u);
    let a = quad_load(base, a_columns);
    var b = vec4<f32>();
    var c = vec4<f32>();
    var d = vec4<f32>();
    if (QUADS > 1u) { b = quad_load(base, b_columns); }
    if (QUADS > 2u) { c = quad_load(base, c_columns); }
    if (QUADS > 3u) { d = quad_load(base, d_columns); }

    let squares = quad_sum(a * a, a_columns) + quad_sum(b * b, b_columns)
        + quad_sum(c * c, c_columns) + quad_sum(d * d, d_columns);
    let scale = 1.0 / sqrt(across_sum(lane, squares) / f32(params.columns) + params.eps);
    if (row >= params.rows) {
        return;
    }
    put_quad(base, a_columns, a * scale);
    if (QUADS > 1u) { put_quad(base, b_columns, b * scale); }
    if (QUADS > 2u) { put_quad(base, c_columns, c * scale); }
    if (QUADS > 3u) { put_quad(base, d_columns, d * scale); }
}
