// out[b, h, t, :] = sum(exp(m_i - m) * acc_i) / sum(exp(m_i - m) * s_i) over the splits i,  m = max(m_i)
//
// Second of two steps; see attention/decode. A row without a visible key gives 0.
//
// state  (batch * kv_heads, splits, rows, value_dim + 2)   a row is a (time, head of the group) pair
// out    (batch, heads, time, value_dim)
// grid   one workgroup per (batch, kv head, row); lanes stride over the columns

const WORKGROUP = 64u;

struct Params {
    state_offset: u32,
    groups: u32,
    splits: u32,
    group: u32,
    time: u32,
    value_dim: u32,
}

@group(0) @binding(0) var<storage, read> state: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_state(i: u32) -> f32 { return state[params.state_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

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
    var largest = -3.4028234e38;
    for (var split = 0u; split < params.splits; split++) {
        largest = max(largest, load_state(first + split * step));
    }
    var total = 0.0;
    for (var split = 0u; split < params.splits; split++) {
        let at = first + split * step;
        total = fma(exp(max(load_state(at) - largest, -88.0)), load_state(at + 1u), total);
    }
    let base = ((pair * params.group + row % params.group) * params.time + row / params.group) * params.value_dim;
    for (var d = lane; d < params.value_dim; d += WORKGROUP) {
        var sum = 0.0;
        for (var split = 0u; split < params.splits; split++) {
            let at = first + split * step;
            sum = fma(exp(max(load_state(at) - largest, -88.0)), load_state(at + 2u + d), sum);
        }
        store_out(base + d, select(sum / total, 0.0, total == 0.0));
    }
}
