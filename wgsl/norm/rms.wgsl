// out[row, c] = x[row, c] / sqrt(mean(x[row, :]^2) + eps) * weight[c]
//
// x       (rows, columns)   contiguous
// weight  (columns)         read only with HAS_WEIGHT
// out     (rows, columns)
// grid    one workgroup per row; lanes stride over the columns
// fuses   x -> out
// turns   2 * (columns // WORKGROUP + 1) + 256
// source  Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", equation 4

const WORKGROUP = 256u;
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

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let base = row * params.columns;
    var squares = 0.0;
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        let value = load_x(base + column);
        squares += value * value;
    }
    let scale = 1.0 / sqrt(across_sum(lane, squares) / f32(params.columns) + params.eps);
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        var value = load_x(base + column) * scale;
        if (HAS_WEIGHT) {
            value *= load_weight(column);
        }
        store_out(base + column, value);
    }
}
