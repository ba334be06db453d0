// out[o, c, i] = exp(x[o, c, i] - m) / s  from the parts' (m, s);  LOG: x - m - log(s)
//
// Second of two steps; see norm/softmax_parts.
//
// x      (outer, columns, inner)   contiguous; rows = outer * inner
// state  (rows, parts, 2)
// out    (outer, columns, inner)
// grid   one workgroup per row and part: it merges the row's states, then writes its own columns
// fuses  -> out
// turns  (parts + chunk) // WORKGROUP + 256
// uses   softmax_state

const WORKGROUP = 256u;
const LOG = false;

struct Params {
    x_offset: u32,
    state_offset: u32,
    rows: u32,
    columns: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_state(i: u32) -> f32 { return state[params.state_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
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
    var merged = softmax_empty();
    for (var p = lane; p < params.parts; p += WORKGROUP) {
        let i = (row * params.parts + p) * 2u;
        merged = softmax_merge(merged, Softmax(load_state(i), load_state(i + 1u)));
    }
    let largest = across_max(lane, merged.largest);
    merged = Softmax(largest, across_sum(lane, softmax_total(merged, largest)));
    let base = row / params.inner * params.columns * params.inner + row % params.inner;
    let end = min((part + 1u) * params.chunk, params.columns);
    for (var column = part * params.chunk + lane; column < end; column += WORKGROUP) {
        let i = base + column * params.inner;
        store_out(i, softmax_scaled(softmax_share(load_x(i), largest), merged, params.rows));
    }
}
