// out[b, h, t, :] = sum(exp(m_i - m) * acc_i) / sum(exp(m_i - m) * s_i) over the splits i,
//   m = max(m_i); with HAS_SINKS the sum below also has exp(sinks[h] - m)
//
// Second of two steps; see attention/decode. A row without a visible key gives 0.
//
// state  (batch * kv_heads, splits, rows, value_dim + 2)   a row is a (time, head of the group)
//        pair; splits <= 64
// sinks  (heads)                                           read only with HAS_SINKS
// out    (batch, heads, time, value_dim)
// grid   one workgroup per (batch, kv head, row); lane i weighs split i, then lanes stride over
//        the columns
// fuses  -> out
// turns  (value_dim // WORKGROUP + 1) * (splits // 4 + 2) + 64
// uses   workgroup_max, workgroup_sum, attention_score

const HAS_SINKS = false;

const WORKGROUP = 64u;
const STEP = 64u;

struct Params {
    state_offset: u32,
    sinks_offset: u32,
    groups: u32,
    splits: u32,
    kv_heads: u32,
    group: u32,
    time: u32,
    keys: u32,
    value_dim: u32,
}

@group(0) @binding(0) var<storage, read> state: array<f32>;
@group(0) @binding(1) var<storage, read> sinks: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_state(i: u32) -> f32 { return state[params.state_offset + i]; }
fn load_sinks(i: u32) -> f32 { return sinks[params.sinks_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> factors: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = id.y * count.x + id.x;
    if (place >= params.groups) {
        return;
    }
    let rows = params.time * params.group;
    let pair = place / rows;
    let row = place % rows;
    let pitch = params.value_dim + 2u;
    let first = (pair * params.splits * rows + row) * pitch;
    let step = rows * pitch;
    // the splits that hold keys, as attention/decode deals them out
    let steps = (params.keys + STEP - 1u) / STEP;
    let chunk = max((steps + params.splits - 1u) / params.splits, 1u);
    let splits = (steps + chunk - 1u) / chunk;

    var largest = HIDDEN;
    var total = 0.0;
    if (lane < splits) {
        largest = load_state(first + lane * step);
        total = load_state(first + lane * step + 1u);
    }
    let all = workgroup_max(lane, largest);
    let factor = exp(max(largest - all, -88.0));
    factors[lane] = factor;
    total = workgroup_sum(lane, total * factor);
    if (HAS_SINKS) {
        let head = pair % params.kv_heads * params.group + row % params.group;
        total = with_sink(total, all, load_sinks(head));
    }
    let base = ((pair * params.group + row % params.group) * params.time + row / params.group)
        * params.value_dim;
    for (var d = lane; d < params.value_dim; d += WORKGROUP) {
        var sum = 0.0;
        for (var split = 0u; split < splits; split += 4u) {
            let which = min(split + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(splits - 1u));
            let at = first + which * step + 2u + d;
            let parts = vec4<f32>(load_state(at.x), load_state(at.y), load_state(at.z),
                load_state(at.w));
            let inside = split + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(splits);
            let weights = vec4<f32>(factors[which.x], factors[which.y], factors[which.z],
                factors[which.w]);
            sum += dot(weights, select(vec4<f32>(), parts, inside));
        }
        store_out(base + d, attention_row(sum, total, all));
    }
}
