// state[row, part] = (m, s): the maximum and the sum of exp(x - m) of one part of a row; s is
//   negative where the part holds a NaN or +inf
//
// First of two steps for rows so long that one workgroup per row leaves the GPU idle.
//
// x      (outer, columns, inner)   contiguous; rows = outer * inner
// state  (rows, parts, 2)   part p holds the columns from p * chunk to (p + 1) * chunk
// grid   one workgroup per row and part; lanes stride over its columns
// fuses  x ->
// turns  chunk // WORKGROUP // 4 + 256
// uses   inner_quad, softmax_state

const WORKGROUP = 256u;
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
fn across_max(lane: u32, value: f32) -> f32 { return workgroup_max(lane, value); }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.parts) {
        return;
    }
    let row = group / params.parts;
    let part = group % params.parts;
    let base = row / params.inner * params.columns * params.inner + row % params.inner;
    let end = min((part + 1u) * params.chunk, params.columns);
    var local = softmax_empty();
    for (var first = part * params.chunk + lane; first < end; first += 4u * WORKGROUP) {
        let columns = first + vec4<u32>(0u, 1u, 2u, 3u) * WORKGROUP;
        local = softmax_add(local, inner_quad(base, columns, end), columns < vec4<u32>(end));
    }
    let largest = across_max(lane, local.largest);
    let total = across_sum(lane, softmax_total(local, largest));
    if (lane == 0u) {
        state[group * 2u] = largest;
        state[group * 2u + 1u] = total;
    }
}
