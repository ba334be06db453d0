// The derivatives of B and C, summed over a block of a group's channels, d as in gradient_channels.wgsl:
//   parts[0, block, t] = sum over channels of d[t] * delta[t] * x[t]
//   parts[1, block, t] = sum over channels of g[t] * h[t]
//
// x        (batch, time, channels)
// delta    (batch, time, channels)
// A        (channels, states)
// B        (batch, time, groups, states)
// C        (batch, time, groups, states)
// g        (batch, time, channels)
// carried  (2, batch, chunks, channels, states)   h before each chunk, e behind each chunk
// parts    (2, blocks, batch, time, groups, states)
// grid     one invocation per block, batch, chunk, group and state
// turns    CHUNK * (2 * BLOCK + 2) + BLOCK
// source   Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", equation 2,
//          differentiated

const WORKGROUP = 64u;
const CHUNK = 32u;
const BLOCK = 32u;

struct Params {
    x_offset: u32,
    delta_offset: u32,
    A_offset: u32,
    B_offset: u32,
    C_offset: u32,
    g_offset: u32,
    carried_offset: u32,
    count: u32,
    batch: u32,
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
@group(0) @binding(6) var<storage, read> carried: array<f32>;
@group(0) @binding(7) var<storage, read_write> parts: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_delta(i: u32) -> f32 { return delta[params.delta_offset + i]; }
fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_B(i: u32) -> f32 { return B[params.B_offset + i]; }
fn load_C(i: u32) -> f32 { return C[params.C_offset + i]; }
fn load_g(i: u32) -> f32 { return g[params.g_offset + i]; }
fn load_carried(i: u32) -> f32 { return carried[params.carried_offset + i]; }
fn store_parts(i: u32, value: f32) { parts[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let own = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (own >= params.count) {
        return;
    }
    let width = params.groups * params.states;
    let place = own % width;
    let chunk = own / width % params.chunks;
    let batch = own / width / params.chunks % params.batch;
    let block = own / width / params.chunks / params.batch;
    let first = batch * params.time + chunk * CHUNK;
    let length = min(CHUNK, params.time - chunk * CHUNK);
    let shared_by = params.channels / params.groups;
    let n = place % params.states;
    let begin = place / params.states * shared_by;
    let half = params.batch * params.chunks * params.channels * params.states;
    var of_B: array<f32, CHUNK>;
    var of_C: array<f32, CHUNK>;
    for (var k = 0u; k < length; k++) {
        of_B[k] = 0.0;
        of_C[k] = 0.0;
    }
    let end = begin + min((block + 1u) * BLOCK, shared_by);
    for (var channel = begin + block * BLOCK; channel < end; channel++) {
        let rate = load_A(channel * params.states + n);
        let start = ((batch * params.chunks + chunk) * params.channels + channel) * params.states + n;
        var state = load_carried(start);
        for (var k = 0u; k < length; k++) {
            let row = (first + k) * params.channels + channel;
            let step = load_delta(row);
            state = exp(step * rate) * state + step * load_x(row) * load_B((first + k) * width + place);
            of_C[k] += load_g(row) * state;
        }
        var behind = load_carried(half + start);
        for (var j = 0u; j < length; j++) {
            let k = length - 1u - j;
            let row = (first + k) * params.channels + channel;
            let step = load_delta(row);
            let d = load_g(row) * load_C((first + k) * width + place) + behind;
            of_B[k] += d * step * load_x(row);
            behind = exp(step * rate) * d;
        }
    }
    let blocks = (shared_by + BLOCK - 1u) / BLOCK;
    let rows = params.batch * params.time;
    for (var k = 0u; k < length; k++) {
        store_parts((block * rows + first + k) * width + place, of_B[k]);
        store_parts(((blocks + block) * rows + first + k) * width + place, of_C[k]);
    }
}
