// out[row, c] = (x[row, c] - mean) / sqrt(variance + eps) * weight[c] + bias[c]
//
// x       (rows, columns)   contiguous
// weight  (columns)         read only with HAS_WEIGHT
// bias    (columns)         read only with HAS_BIAS
// out     (rows, columns)
// grid    one workgroup per row; lanes stride over the columns three times: mean, variance (about
//         the mean), output
// fuses   x -> out
// turns   3 * (columns // WORKGROUP + 1) + 256
// source  Ba, Kiros and Hinton 2016, "Layer Normalization", equation 3

const WORKGROUP = 256u;
const HAS_WEIGHT = true;
const HAS_BIAS = true;

struct Params {
    x_offset: u32,
    weight_offset: u32,
    bias_offset: u32,
    rows: u32,
    columns: u32,
    eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_weight(i: u32) -> f32 { return weight[params.weight_offset + i]; }
fn load_bias(i: u32) -> f32 { return bias[params.bias_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let base = row * params.columns;
    var values = 0.0;
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        values += load_x(base + column);
    }
    let mean = across_sum(lane, values) / f32(params.columns);
    var squares = 0.0;
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        let difference = load_x(base + column) - mean;
        squares += difference * difference;
    }
    let variance = nan_of_infinite(across_sum(lane, squares) / f32(params.columns));
    let scale = 1.0 / sqrt(variance + params.eps);
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        var value = (load_x(base + column) - mean) * scale;
        if (HAS_WEIGHT) {
            value *= load_weight(column);
        }
        if (HAS_BIAS) {
            value += load_bias(column);
        }
        store_out(base + column, value);
    }
}
