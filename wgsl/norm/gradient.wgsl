// out[row, c] = s * (h[c] - n[c] * mean(h * n))  with  n = x[row, :] * s, s = 1 / sqrt(mean(x^2) + eps),
//   h = g[row, :] * weight; CENTRED: x without its mean, and less s * mean(h)
//
// The derivative of an RMS norm, or of a layer norm, with respect to its input.
//
// g       (rows, columns)   contiguous
// x       (rows, columns)   contiguous
// weight  (columns)         read only with HAS_WEIGHT
// out     (rows, columns)
// grid    one workgroup per row; lanes stride over the columns three times: mean, the other sums,
//         output; without CENTRED twice
// fuses   -> out
// turns   3 * (columns // WORKGROUP + 1) + 256
// source  Ba, Kiros and Hinton 2016, "Layer Normalization", equation 3, differentiated

const WORKGROUP = 256u;
const HAS_WEIGHT = true;
const CENTRED = true;

struct Params {
    g_offset: u32,
    x_offset: u32,
    weight_offset: u32,
    rows: u32,
    columns: u32,
    eps: f32,
}

@group(0) @binding(0) var<storage, read> g: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_g(i: u32) -> f32 { return g[params.g_offset + i]; }
fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
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
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let base = row * params.columns;
    let length = f32(params.columns);
    var mean = 0.0;
    if (CENTRED) {
        var values = 0.0;
        for (var column = lane; column < params.columns; column += WORKGROUP) {
            values += load_x(base + column);
        }
        mean = across_sum(lane, values) / length;
    }
    var squares = 0.0;
    var products = 0.0;
    var gradients = 0.0;
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        let value = load_x(base + column) - mean;
        let gradient = weighted(base, column);
        squares += value * value;
        products += value * gradient;
        gradients += gradient;
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
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        let value = load_x(base + column) - mean;
        store_out(base + column, scale * (weighted(base, column) - shift - value * product));
    }
}
