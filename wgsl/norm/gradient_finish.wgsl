// out[row, c] = s * (h[c] - n[c] * mean(h * n))  with  n = x[row, :] * s, s = 1 / sqrt(mean(x^2) + eps),
//   h = g[row, :] * weight; CENTRED: x without its mean, and less s * mean(h); from the parts' sums
//
// Second of two steps; see norm/gradient_parts.
//
// g       (rows, columns)   contiguous
// x       (rows, columns)   contiguous
// state   (rows, parts, 4)
// weight  (columns)         read only with HAS_WEIGHT
// out     (rows, columns)
// grid    one workgroup per row and part: it merges the row's states, then writes its own columns
// fuses   -> out
// turns   (2 * parts + chunk) // WORKGROUP + 256
// source  Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing
//         Sample Variances", equation 2.1

const WORKGROUP = 256u;
const HAS_WEIGHT = true;
const CENTRED = true;

struct Params {
    g_offset: u32,
    x_offset: u32,
    state_offset: u32,
    weight_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
    eps: f32,
}

@group(0) @binding(0) var<storage, read> g: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> state: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_g(i: u32) -> f32 { return g[params.g_offset + i]; }
fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_state(i: u32) -> f32 { return state[params.state_offset + i]; }
fn load_weight(i: u32) -> f32 { return weight[params.weight_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

fn weighted(base: u32, column: u32) -> f32 {
    let value = load_g(base + column);
    if (HAS_WEIGHT) {
        return value * load_weight(column);
    }
    return value;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.parts) {
        return;
    }
    let row = group / params.parts;
    let part = group % params.parts;
    let states = row * params.parts;
    let length = f32(params.columns);
    var mean = 0.0;
    if (CENTRED) {
        var values = 0.0;
        for (var p = lane; p < params.parts; p += WORKGROUP) {
            values += load_state((states + p) * 4u) * part_columns(p);
        }
        mean = across_sum(lane, values) / length;
    }
    var squares = 0.0;
    var products = 0.0;
    var gradients = 0.0;
    for (var p = lane; p < params.parts; p += WORKGROUP) {
        let at = (states + p) * 4u;
        let distance = load_state(at) - mean;
        squares += load_state(at + 1u) + distance * distance * part_columns(p);
        products += load_state(at + 3u);
        if (CENTRED) {
            gradients += load_state(at + 2u);
            products += load_state(at + 2u) * distance;
        }
    }
    var square = across_sum(lane, squares) / length;
    if (CENTRED) {
        square = nan_of_infinite(square);
    }
    let scale = 1.0 / sqrt(square + params.eps);
    let product = across_sum(lane, products) / length * scale * scale;
    var shift = 0.0;
    if (CENTRED) {
        shift = across_sum(lane, gradients) / length;
    }
    let base = row * params.columns;
    let end = min((part + 1u) * params.chunk, params.columns);
    for (var column = part * params.chunk + lane; column < end; column += WORKGROUP) {
        let value = load_x(base + column) - mean;
        store_out(base + column, scale * (weighted(base, column) - shift - value * product));
    }
}
