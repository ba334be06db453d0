// out[r, c] = exp(x[r, c] - m) / s  with  m = max(x[r, :]), s = sum(exp(x[r, :] - m));
//   LOG: x - m - log(s)
//
// For rows that the registers of their lanes hold: every element is read once. A row with a NaN or
// +inf, or with -inf only, becomes NaN, as in PyTorch.
//
// x     (rows, columns)   contiguous; columns <= 4 * QUADS * LANES
// out   (rows, columns)
// grid  one workgroup per WORKGROUP / LANES rows; LANES lanes share a row
// fuses x -> out
// turns 256
// uses  row_quads, softmax_state

const WORKGROUP = 64u;
const LANES = 64u;
const QUADS = 4u;
const LOG = false;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn across_max(lane: u32, value: f32) -> f32 { return workgroup_max(lane, value); }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

fn put(base: u32, column: u32, share: f32, state: Softmax) {
    if (column < params.columns) {
        store_out(base + column, softmax_scaled(share, state, params.rows));
    }
}

fn put_quad(base: u32, columns: vec4<u32>, shares: vec4<f32>, state: Softmax) {
    put(base, columns.x, shares.x, state);
    put(base, columns.y, shares.y, state);
    put(base, columns.z, shares.z, state);
    put(base, columns.w, shares.w, state);
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
    var a = quad_load(base, a_columns);
    var b = vec4<f32>(SOFTMAX_LOWEST);
    var c = vec4<f32>(SOFTMAX_LOWEST);
    var d = vec4<f32>(SOFTMAX_LOWEST);
    if (QUADS > 1u) { b = quad_load(base, b_columns); }
    if (QUADS > 2u) { c = quad_load(base, c_columns); }
    if (QUADS > 3u) { d = quad_load(base, d_columns); }

    let is_poisoned = softmax_is_poison(a) || softmax_is_poison(b) || softmax_is_poison(c)
        || softmax_is_poison(d);
    let largest = across_max(lane, max(max(softmax_peak(a), softmax_peak(b)),
        max(softmax_peak(c), softmax_peak(d))));

    var shares = softmax_exps(a, largest);
    var total = quad_sum(shares, a_columns);
    a = select(shares, a, LOG);
    if (QUADS > 1u) {
        shares = softmax_exps(b, largest);
        total += quad_sum(shares, b_columns);
        b = select(shares, b, LOG);
    }
    if (QUADS > 2u) {
        shares = softmax_exps(c, largest);
        total += quad_sum(shares, c_columns);
        c = select(shares, c, LOG);
    }
    if (QUADS > 3u) {
        shares = softmax_exps(d, largest);
        total += quad_sum(shares, d_columns);
        d = select(shares, d, LOG);
    }
    let state = Softmax(largest, across_sum(lane, select(total, SOFTMAX_POISON, is_poisoned)));
    if (row >= params.rows) {
        return;
    }
    put_quad(base, a_columns, a, state);
    if (QUADS > 1u) { put_quad(base, b_columns, b, state); }
    if (QUADS > 2u) { put_quad(base, c_columns, c, state); }
    if (QUADS > 3u) { put_quad(base, d_columns, d, state); }
}
