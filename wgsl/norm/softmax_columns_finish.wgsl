// out[o, c, i] = exp(x[o, c, i] - m) / s  from the parts' (m, s);  LOG: x - m - log(s)
//
// Second of two steps; see norm/softmax_columns_parts.
//
// x      (outer, columns, inner)     contiguous; rows = outer * inner
// state  (outer, parts, inner, 2)
// out    (outer, columns, inner)
// grid   one invocation per part of a row: it merges the row's states, then writes its own columns
// fuses  x -> out
// turns  parts + chunk
// uses   softmax_state

const WORKGROUP = 64u;
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

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (place >= params.rows * params.parts) {
        return;
    }
    let line = place / params.inner;
    let outer = line / params.parts;
    let inner = place % params.inner;
    var merged = softmax_empty();
    for (var part = 0u; part < params.parts; part++) {
        let i = ((outer * params.parts + part) * params.inner + inner) * 2u;
        merged = softmax_merge(merged, Softmax(load_state(i), load_state(i + 1u)));
    }
    let base = outer * params.columns * params.inner + inner;
    let begin = line % params.parts * params.chunk;
    let end = min(begin + params.chunk, params.columns);
    for (var column = begin; column < end; column++) {
        let i = base + column * params.inner;
        store_out(i, softmax_scaled(softmax_share(load_x(i), merged.largest), merged, params.rows));
    }
}
