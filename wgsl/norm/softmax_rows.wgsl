// out[o, c, i] = exp(x[o, c, i] - m) / s  with  m = max(x[o, :, i]), s = sum(exp(x[o, :, i] - m));
//   LOG: x - m - log(s)
//
// A row with a NaN or +inf, or with -inf only, becomes NaN, as in PyTorch.
//
// x       (outer, columns, inner)   contiguous; rows = outer * inner
// out     (outer, columns, inner)
// grid    one workgroup per row; lanes stride over the columns, twice: once for (m, s) together,
//         four at a time, once to write
// fuses   x -> out
// turns   2 * (columns // WORKGROUP + 1) + 256
// source  Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3
// uses    inner_quad, softmax_state

const WORKGROUP = 256u;
const LOG = false;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn across_max(lane: u32, value: f32) -> f32 { return workgroup_max(lane, value); }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.rows) {
        return;
    }
    let base = row / params.inner * params.columns * params.inner + row % params.inner;
    var state = softmax_empty();
    for (var first = lane; first < params.columns; first += 4u * WORKGROUP) {
        let columns = first + vec4<u32>(0u, 1u, 2u, 3u) * WORKGROUP;
        state = softmax_add(state, inner_quad(base, columns, params.columns),
            columns < vec4<u32>(params.columns));
    }
    let largest = across_max(lane, state.largest);
    state = Softmax(largest, across_sum(lane, softmax_total(state, largest)));
    for (var column = lane; column < params.columns; column += WORKGROUP) {
        let i = base + column * params.inner;
        store_out(i, softmax_scaled(softmax_share(load_x(i), largest), state, params.rows));
    }
}
