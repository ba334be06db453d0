// out[t] = sum over n of C[t, n] * h[t, n]   with  h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * x[t] * B[t]
// last = h of the last position
//
// x       (batch, time, channels)
// delta   (batch, time, channels)
// A       (channels, states)
// B       (batch, time, groups, states)    neighbouring channels share a group
// C       (batch, time, groups, states)
// starts  h before each chunk, read only with HAS_START: (batch, chunks, states, channels), or of the only
//         chunk as it was given, (batch, channels, states)
// out     (batch, time, channels)
// last    (batch, channels, states)
// grid    one invocation per batch, chunk and channel
// fuses   -> out
// turns   states // HELD * (CHUNK * (HELD + 1) + 3 * HELD + 1) + 2 * CHUNK
// source  Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", equation 2

const WORKGROUP = 64u;
const CHUNK = 32u;
const HAS_START = true;
// States that an invocation holds in registers while it goes through the chunk; it divides `states`.
const HELD = 16u;
const ALL_HELD = true;

struct Params {
    x_offset: u32,
    delta_offset: u32,
    A_offset: u32,
    B_offset: u32,
    C_offset: u32,
    starts_offset: u32,
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
@group(0) @binding(5) var<storage, read> starts: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
@group(0) @binding(7) var<storage, read_write> last: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_delta(i: u32) -> f32 { return delta[params.delta_offset + i]; }
fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_B(i: u32) -> f32 { return B[params.B_offset + i]; }
fn load_C(i: u32) -> f32 { return C[params.C_offset + i]; }
fn load_starts(i: u32) -> f32 { return starts[params.starts_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn store_last(i: u32, value: f32) { last[i] = value; }

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
    var sums: array<f32, CHUNK>;
    for (var base = 0u; base < params.states; base += HELD) {
        var rates: array<f32, HELD>;
        var held: array<f32, HELD>;
        for (var n = 0u; n < HELD; n++) {
            rates[n] = load_A(channel * params.states + base + n);
            held[n] = 0.0;
            if (HAS_START) {
                let carried = (own / params.channels * params.states + base + n) * params.channels + channel;
                held[n] = load_starts(select(carried, own * params.states + base + n, params.chunks == 1u));
            }
        }
        for (var k = 0u; k < length; k++) {
            let row = (first + k) * params.channels + channel;
            let step = load_delta(row);
            let weight = step * load_x(row);
            let i = ((first + k) * params.groups + group) * params.states + base;
            var sum = 0.0;
            for (var n = 0u; n < HELD; n++) {
                held[n] = exp(step * rates[n]) * held[n] + weight * load_B(i + n);
                sum += held[n] * load_C(i + n);
            }
            if (ALL_HELD) {
                store_out(row, sum);
            } else {
                sums[k] = select(sums[k], 0.0, base == 0u) + sum;
            }
        }
        if (chunk + 1u == params.chunks) {
            for (var n = 0u; n < HELD; n++) {
                store_last((batch * params.channels + channel) * params.states + base + n, held[n]);
            }
        }
    }
    if (!ALL_HELD) {
        for (var k = 0u; k < length; k++) {
            store_out((first + k) * params.channels + channel, sums[k]);
        }
    }
}
