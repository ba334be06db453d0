// out[row, c] = (x[row, c] - mean) / sqrt(variance + eps) * weight[c] + bias[c]  from the parts'
//   means and squares; without CENTRED the mean is 0
//
// Second of two steps; see norm/parts.
//
// x       (rows, columns)   contiguous
// state   (rows, parts, 2)
// weight  (columns)         read only with HAS_WEIGHT
// bias    (columns)         read only with HAS_BIAS
// out     (rows, columns)
// grid    one workgroup per row and part: it merges the row's states, then writes its own columns
// fuses   -> out
// turns   (2 * parts + chunk) // WORKGROUP + 256
// source  Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing
//         Sample Variances", equation 2.1
// uses    row_quads

const WORKGROUP = 256u;
const LANES = WORKGROUP;
const CENTRED = true;
const HAS_WEIGHT = true;
const HAS_BIAS = true;

struct Params {
    x_offset: u32,
    state_offset: u32,
    weight_offset: u32,
    bias_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
    eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_state(i: u32) -> f32 { return state[params.state_offset + i]; }
fn load_weight(i: u32) -> f32 { return weight[params.weight_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

fn weighted(column: u32, value: f32) -> f32 {
    var result = value;
    if (HAS_WEIGHT) {
        result *= load_weight(column);
    }
    if (HAS_BIAS) {
        result += load_bias(column);
    }
    return result;
}

// In one block where all four are there: a branch each takes twice as long.
fn put_quad(base: u32, columns: vec4<u32>, end: u32, values: vec4<f32>) {
    if (columns.w < end) {
        store_out(base + columns.x, weighted(columns.x, values.x));
        store_out(base + columns.y, weighted(columns.y, values.y));
        store_out(base + columns.z, weighted(columns.z, values.z));
        store_out(base + columns.w, weighted(columns.w, values.w));
        return;
    }
    if (columns.x < end) { store_out(base + columns.x, weighted(columns.x, values.x)); }
    if (columns.y < end) { store_out(base + columns.y, weighted(columns.y, values.y)); }
    if (columns.z < end) { store_out(base + columns.z, weighted(columns.z, values.z)); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let index = id.y * count.x + id.x;
    if (index >= params.rows * params.parts) {
        return;
    }
    // the last ones first: what was read last lies in a cache
    let group = params.rows * params.parts - 1u - index;
    let row = group / params.parts;
    let part = group % params.parts;
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    // 16 loads are under way while the states are merged
    var first = part * params.chunk + lane;
    var a = quad_load(base, quad_columns(first, 0u));
    var b = quad_load(base, quad_columns(first, 1u));
    var c = quad_load(base, quad_columns(first, 2u));
    var d = quad_load(base, quad_columns(first, 3u));
    let states = row * params.parts;
    var mean = 0.0;
    if (CENTRED) {
        var values = 0.0;
        for (var p = lane; p < params.parts; p += WORKGROUP) {
            values += load_state((states + p) * 2u) * part_columns(p);
        }
        mean = across_sum(lane, values) / f32(params.columns);
    }
    var squares = 0.0;
    for (var p = lane; p < params.parts; p += WORKGROUP) {
        let distance = load_state((states + p) * 2u) - mean;
        squares += load_state((states + p) * 2u + 1u) + distance * distance * part_columns(p);
    }
    var variance = across_sum(lane, squares) / f32(params.columns);
    if (CENTRED) {
        variance = nan_of_infinite(variance);
    }
    let scale = 1.0 / sqrt(variance + params.eps);
    while (first < end) {
        put_quad(base, quad_columns(first, 0u), end, (a - mean) * scale);
        put_quad(base, quad_columns(first, 1u), end, (b - mean) * scale);
        put_quad(base, quad_columns(first, 2u), end, (c - mean) * scale);
        put_quad(base, quad_columns(first, 3u), end, (d - mean) * scale);
        first += 16u * WORKGROUP;
        if (first < end) {
            a = quad_load(base, quad_columns(first, 0u));
            b = quad_load(base, quad_columns(first, 1u));
            c = quad_load(base, quad_columns(first, 2u));
            d = quad_load(base, quad_columns(first, 3u));
        }
    }
}
