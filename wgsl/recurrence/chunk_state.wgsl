// ends[c] = the state that a chunk of time makes of nothing:
//   h[t] = exp(delta[t] * A) * h[t - 1] + weight[t] * along[t]        weight = delta * x, along = B
// BACK, from the last position to the first, what it hands to the positions before it:
//   e[t - 1] = exp(delta[t] * A) * (e[t] + weight[t] * along[t])      weight = x, along = C
// spans[c] = the sum of delta over the chunk; states decay by exp(spans * A) over it
//
// x      (batch, time, channels)
// delta  (batch, time, channels)
// A      (channels, states)
// along  (batch, time, groups, states)         neighbouring channels share a group; BACK: the second of both
// ends   (batch, chunks, states, channels)
// spans  (batch, chunks, channels)
// grid   one invocation per batch, chunk and channel
// turns  states // HELD * (CHUNK * (HELD + 1) + 2 * HELD + 1)
// source Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", equation 2

const WORKGROUP = 64u;
const CHUNK = 32u;
const BACK = false;
// States that an invocation holds in registers while it goes through the chunk; it divides `states`.
const HELD = 16u;

struct Params {
    x_offset: u32,
    delta_offset: u32,
    A_offset: u32,
    along_offset: u32,
    count: u32,
    time: u32,
    chunks: u32,
    channels: u32,
    groups: u32,
    states: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> delta: array<f32>;
@group(0) @binding(2) var<storage, read> A: array<f32>;
@group(0) @binding(3) var<storage, read> along: array<f32>;
@group(0) @binding(4) var<storage, read_write> ends: array<f32>;
@group(0) @binding(5) var<storage, read_write> spans: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_delta(i: u32) -> f32 { return delta[params.delta_offset + i]; }
fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_along(i: u32) -> f32 { return along[params.along_offset + i]; }
fn store_ends(i: u32, value: f32) { ends[i] = value; }
fn store_spans(i: u32, value: f32) { spans[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let own = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (own >= params.count) {
        return;
    }
    let channel = own % params.channels;
    let chunk = own / params.channels % params.chunks;
    let first = own / params.channels / params.chunks * params.time + chunk * CHUNK;
    let length = min(CHUNK, params.time - chunk * CHUNK);
    let group = channel / (params.channels / params.groups);
    let both = params.count / (params.chunks * params.channels) * params.time * params.groups * params.states;
    let begin = select(0u, both, BACK);
    for (var base = 0u; base < params.states; base += HELD) {
        var rates: array<f32, HELD>;
        var held: array<f32, HELD>;
        for (var n = 0u; n < HELD; n++) {
            rates[n] = load_A(channel * params.states + base + n);
            held[n] = 0.0;
        }
        var span = 0.0;
        for (var j = 0u; j < length; j++) {
            let k = select(j, length - 1u - j, BACK);
            let row = (first + k) * params.channels + channel;
            let step = load_delta(row);
            let weight = select(step, 1.0, BACK) * load_x(row);
            let i = begin + ((first + k) * params.groups + group) * params.states + base;
            span += step;
            for (var n = 0u; n < HELD; n++) {
                let decay = exp(step * rates[n]);
                let added = weight * load_along(i + n);
                held[n] = select(decay * held[n] + added, decay * (held[n] + added), BACK);
            }
        }
        store_spans(own, span);
        for (var n = 0u; n < HELD; n++) {
            store_ends((own / params.channels * params.states + base + n) * params.channels + channel, held[n]);
        }
    }
}
