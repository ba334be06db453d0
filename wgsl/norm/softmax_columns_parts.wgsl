// state[o, part, i] = (m, s): the maximum and the sum of exp(x - m) of one part of x[o, :, i]; s is negative where
//   the part holds a NaN or +inf
//
// For an axis that is not the last, and rows too few to fill a GPU with a lane each: see norm/softmax_columns.
// First of two steps.
//
// x      (outer, columns, inner)     contiguous; rows = outer * inner
// state  (outer, parts, inner, 2)    part p holds the columns from p * chunk to (p + 1) * chunk
// grid   one invocation per part of a row, so that neighbours in `inner` read neighbouring words
// fuses  x ->
// turns  chunk // 4 + 1
// uses   inner_quad, softmax_state

const WORKGROUP = 64u;
const LOG = false;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> state: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (place >= params.rows * params.parts) {
        return;
    }
    let line = place / params.inner;
    let base = line / params.parts * params.columns * params.inner + place % params.inner;
    let begin = line % params.parts * params.chunk;
    let end = min(begin + params.chunk, params.columns);
    var local = softmax_empty();
    for (var first = begin; first < end; first += 4u) {
        let columns = first + vec4<u32>(0u, 1u, 2u, 3u);
        local = softmax_add(local, inner_quad(base, columns, end), columns < vec4<u32>(end));
    }
    state[place * 2u] = local.largest;
    state[place * 2u + 1u] = local.total;
}
