// out[o, c, i] = exp(x[o, c, i] - m) / s  with  m = max(x[o, :, i]), s = sum(exp(x[o, :, i] - m));
//   LOG: x - m - log(s)
//
// For an axis that is not the last, where there are many rows: see norm/softmax_rows, of which this is
// the form with one lane a row, so that neighbours in `inner` read neighbouring words.
//
// x     (outer, columns, inner)   contiguous; rows = outer * inner
// out   (outer, columns, inner)
// grid  one workgroup per WORKGROUP rows, one lane each
// fuses x -> out
// turns columns // 4 + columns + 1
// uses  inner_quad, softmax_state

const WORKGROUP = 64u;
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

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (row >= params.rows) {
        return;
    }
    let base = row / params.inner * params.columns * params.inner + row % params.inner;
    var state = softmax_empty();
    for (var first = 0u; first < params.columns; first += 4u) {
        let columns = first + vec4<u32>(0u, 1u, 2u, 3u);
        state = softmax_add(state, inner_quad(base, columns, params.columns),
            columns < vec4<u32>(params.columns));
    }
    for (var column = 0u; column < params.columns; column++) {
        let i = base + column * params.inner;
        store_out(i, softmax_scaled(softmax_share(load_x(i), state.largest), state, params.rows));
    }
}
