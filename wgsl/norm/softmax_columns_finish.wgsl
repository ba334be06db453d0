// out[o, c, i] = exp(x[o, c, i] - m) / s  LOG: x - m - log(s)
//   where (m, s) are the maximum and the sum of exp(x - m) of x[o, :, i]
//
// For an axis that is not the last, and rows too few to fill a GPU with a lane each: see norm/softmax_columns.
// The second step; the first is a reduction.
//
// x      (outer, columns, inner)     contiguous; rows = outer * inner
// state  (outer, inner)              (m, s)
// out    (outer, columns, inner)
// grid   one invocation per HEIGHT neighbours of a row, so that neighbours in `inner` read neighbouring words
// fuses  x -> out
// turns  HEIGHT
// uses   inner_quad, softmax_state

const WORKGROUP = 64u;
const LOG = false;
const HEIGHT = 8u;

struct Params {
    x_offset: u32,
    state_offset: u32,
    rows: u32,
    columns: u32,
    inner: u32,
    parts: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> state: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_state(i: u32) -> vec2<f32> { return state[params.state_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

fn scaled_quad(values: vec4<f32>, state: Softmax) -> vec4<f32> {
    return vec4<f32>(
        softmax_scaled(softmax_share(values.x, state.largest), state, params.rows),
        softmax_scaled(softmax_share(values.y, state.largest), state, params.rows),
        softmax_scaled(softmax_share(values.z, state.largest), state, params.rows),
        softmax_scaled(softmax_share(values.w, state.largest), state, params.rows));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (place >= params.rows * params.parts) {
        return;
    }
    let line = place / params.inner;
    let inner = place - line * params.inner;
    let outer = line / params.parts;
    let begin = (line - outer * params.parts) * HEIGHT;
    let base = outer * params.columns * params.inner + inner;
    // all are asked for before one is used; past the end the last one comes again
    let columns = begin + vec4<u32>(0u, 1u, 2u, 3u);
    let near = inner_quad(base, columns, params.columns);
    let far = inner_quad(base, columns + 4u, params.columns);
    let pair = load_state(outer * params.inner + inner);
    let is_finite = (bitcast<u32>(pair.x) & 0x7fffffffu) < 0x7f800000u;
    let merged = Softmax(pair.x, select(SOFTMAX_POISON, pair.y, is_finite));
    let first = scaled_quad(near, merged);
    let second = scaled_quad(far, merged);
    let at = base + begin * params.inner;
    if (begin + HEIGHT <= params.columns) {
        store_out(at, first.x);
        store_out(at + params.inner, first.y);
        store_out(at + 2u * params.inner, first.z);
        store_out(at + 3u * params.inner, first.w);
        store_out(at + 4u * params.inner, second.x);
        store_out(at + 5u * params.inner, second.y);
        store_out(at + 6u * params.inner, second.z);
        store_out(at + 7u * params.inner, second.w);
        return;
    }
    for (var k = 0u; begin + k < params.columns; k++) {
        store_out(at + k * params.inner, select(second[k & 3u], first[k & 3u], k < 4u));
    }
}
