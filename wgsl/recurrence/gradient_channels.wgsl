// With d[t] = g[t] * C[t] + e[t], the derivative of the state h[t], and e[t - 1] = exp(delta[t] * A) * d[t]:
//   rows[0, t] = delta[t] * sum over n of d[t] * B[t]                                    that of x
//   rows[1, t] = sum over n of d[t] * (A * exp(delta[t] * A) * h[t - 1] + x[t] * B[t])   that of delta
//   carried[0, chunk] = sum over t of d[t] * delta[t] * exp(delta[t] * A) * h[t - 1]     the chunk's of A
//   carried[1, chunk] = e before the chunk                                     of the first, that of initial
//
// x        (batch, time, channels)
// delta    (batch, time, channels)
// A        (channels, states)
// B        (batch, time, groups, states)
// C        (batch, time, groups, states)
// g        (batch, time, channels)
// carried  (2, batch, chunks, channels, states)   in: h before each chunk, e behind each chunk
// rows     (2, batch, time, channels)
// grid     one invocation per batch, chunk and channel
// turns    CHUNK * (2 * states + 2) + states
// source   Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", equation 2,
//          differentiated

const WORKGROUP = 64u;
const CHUNK = 32u;

struct Params {
    x_offset: u32,
    delta_offset: u32,
    A_offset: u32,
    B_offset: u32,
    C_offset: u32,
    g_offset: u32,
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
@group(0) @binding(3) var<storage, read> B: array<f32>;
@group(0) @binding(4) var<storage, read> C: array<f32>;
@group(0) @binding(5) var<storage, read> g: array<f32>;
@group(0) @binding(6) var<storage, read_write> carried: array<f32>;
@group(0) @binding(7) var<storage, read_write> rows: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_delta(i: u32) -> f32 { return delta[params.delta_offset + i]; }
fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_B(i: u32) -> f32 { return B[params.B_offset + i]; }
fn load_C(i: u32) -> f32 { return C[params.C_offset + i]; }
fn load_g(i: u32) -> f32 { return g[params.g_offset + i]; }
fn load_carried(i: u32) -> f32 { return carried[i]; }
fn store_carried(i: u32, value: f32) { carried[i] = value; }
fn store_rows(i: u32, value: f32) { rows[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let own = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (own >= params.count) {
        return;
    }
    let channel = own % params.channels;
    let chunk = own / params.channels % params.chunks;
    let batch = own / params.channels / params.chunks;
    let first = batch * params.time + chunk * CHUNK;
    let length = min(CHUNK, params.time - chunk * CHUNK);
    let group = channel / (params.channels / params.groups);
    var steps: array<f32, CHUNK>;
    var inputs: array<f32, CHUNK>;
    var incoming: array<f32, CHUNK>;
    var past: array<f32, CHUNK>;
    var along: array<f32, CHUNK>;
    var decayed: array<f32, CHUNK>;
    for (var k = 0u; k < length; k++) {
        let row = (first + k) * params.channels + channel;
        steps[k] = load_delta(row);
        inputs[k] = load_x(row);
        incoming[k] = load_g(row);
        along[k] = 0.0;
        decayed[k] = 0.0;
    }
    for (var n = 0u; n < params.states; n++) {
        let rate = load_A(channel * params.states + n);
        let place = own * params.states + n;
        var state = load_carried(place);
        for (var k = 0u; k < length; k++) {
            let i = ((first + k) * params.groups + group) * params.states + n;
            past[k] = exp(steps[k] * rate) * state;
            state = past[k] + steps[k] * inputs[k] * load_B(i);
        }
        var behind = load_carried(params.count * params.states + place);
        var of_rate = 0.0;
        for (var j = 0u; j < length; j++) {
            let k = length - 1u - j;
            let i = ((first + k) * params.groups + group) * params.states + n;
            let d = incoming[k] * load_C(i) + behind;
            along[k] += d * load_B(i);
            decayed[k] += d * rate * past[k];
            of_rate += d * steps[k] * past[k];
            behind = exp(steps[k] * rate) * d;
        }
        store_carried(place, of_rate);
        store_carried(params.count * params.states + place, behind);
    }
    let half = params.count / params.chunks * params.time;
    for (var k = 0u; k < length; k++) {
        let row = (first + k) * params.channels + channel;
        store_rows(row, steps[k] * along[k]);
        store_rows(half + row, inputs[k] * along[k] + decayed[k]);
    }
}
