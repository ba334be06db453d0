// With d[t] = g[t] * C[t] + e[t], the derivative of the state h[t], and e[t - 1] = exp(delta[t] * A) * d[t]:
//   rows[0, t] = delta[t] * sum over n of d[t] * B[t]                                    that of x
//   rows[1, t] = sum over n of d[t] * (A * exp(delta[t] * A) * h[t - 1] + x[t] * B[t])   that of delta
//   carried[0, chunk] = sum over t of d[t] * delta[t] * exp(delta[t] * A) * h[t - 1]     the chunk's of A
//   carried[1, chunk] = e before the chunk                                     of the first, that of initial
//   parts[0, block, t] = sum over channels of d[t] * delta[t] * x[t]           that of B, of WORKGROUP channels
//   parts[1, block, t] = sum over channels of g[t] * h[t]                      that of C
//
// x        (batch, time, channels)
// delta    (batch, time, channels)
// A        (channels, states)
// along    (2, batch, time, groups, states)       B and C
// g        (batch, time, channels)
// carried  (2, batch, chunks, states, channels)   in: h before each chunk, e behind each chunk
// rows     (2, batch, time, channels)
// parts    (2, blocks, batch, time, groups, states)
// grid     one workgroup per batch, chunk, group and block of the group's channels, a lane per channel
// turns    states * (2 * CHUNK + WORKGROUP + 1) + 2 * CHUNK
// source   Gu and Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", equation 2,
//          differentiated

const WORKGROUP = 64u;
const CHUNK = 16u;
const SUMS = 2u * CHUNK;
// Rows of the tile lie in different banks.
const PITCH = WORKGROUP + 1u;

struct Params {
    x_offset: u32,
    delta_offset: u32,
    A_offset: u32,
    along_offset: u32,
    g_offset: u32,
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
@group(0) @binding(3) var<storage, read> along: array<f32>;
@group(0) @binding(4) var<storage, read> g: array<f32>;
@group(0) @binding(5) var<storage, read_write> carried: array<f32>;
@group(0) @binding(6) var<storage, read_write> rows: array<f32>;
@group(0) @binding(7) var<storage, read_write> parts: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_delta(i: u32) -> f32 { return delta[params.delta_offset + i]; }
fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_along(i: u32) -> f32 { return along[params.along_offset + i]; }
fn load_g(i: u32) -> f32 { return g[params.g_offset + i]; }
fn load_carried(i: u32) -> f32 { return carried[i]; }
fn store_carried(i: u32, value: f32) { carried[i] = value; }
fn store_rows(i: u32, value: f32) { rows[i] = value; }
fn store_parts(i: u32, value: f32) { parts[i] = value; }

var<workgroup> tile: array<f32, SUMS * PITCH>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let own = id.y * count.x + id.x;
    if (own >= params.count) {
        return;
    }
    let shared_by = params.channels / params.groups;
    let blocks = (shared_by + WORKGROUP - 1u) / WORKGROUP;
    let block = own % blocks;
    let group = own / blocks % params.groups;
    let chunk = own / blocks / params.groups % params.chunks;
    let batch = own / blocks / params.groups / params.chunks;
    let is_channel = block * WORKGROUP + lane < shared_by;
    let channel = group * shared_by + min(block * WORKGROUP + lane, shared_by - 1u);
    let first = batch * params.time + chunk * CHUNK;
    let length = min(CHUNK, params.time - chunk * CHUNK);
    let width = params.groups * params.states;
    let half_along = params.batch * params.time * width;
    let half_carried = params.batch * params.chunks * params.states * params.channels;
    let half_rows = params.batch * params.time * params.channels;

    // Loops of CHUNK turns, so that their arrays are registers: behind the end a step is 0 and changes nothing.
    var steps: array<f32, CHUNK>;
    var inputs: array<f32, CHUNK>;
    var incoming: array<f32, CHUNK>;
    var sums: array<f32, CHUNK>;
    var decayed: array<f32, CHUNK>;
    for (var k = 0u; k < CHUNK; k++) {
        let row = (first + min(k, length - 1u)) * params.channels + channel;
        steps[k] = select(0.0, load_delta(row), k < length);
        inputs[k] = select(0.0, load_x(row), k < length);
        incoming[k] = select(0.0, load_g(row), k < length);
        sums[k] = 0.0;
        decayed[k] = 0.0;
    }
    for (var n = 0u; n < params.states; n++) {
        let rate = load_A(channel * params.states + n);
        let place = ((batch * params.chunks + chunk) * params.states + n) * params.channels + channel;
        let begin = (first * params.groups + group) * params.states + n;
        var decays: array<f32, CHUNK>;
        var past: array<f32, CHUNK>;
        var state = load_carried(place);
        for (var k = 0u; k < CHUNK; k++) {
            decays[k] = exp(steps[k] * rate);
            past[k] = decays[k] * state;
            state = past[k] + steps[k] * inputs[k] * load_along(begin + min(k, length - 1u) * width);
            tile[(CHUNK + k) * PITCH + lane] = select(0.0, incoming[k] * state, is_channel);
        }
        var behind = load_carried(half_carried + place);
        var of_rate = 0.0;
        for (var j = 0u; j < CHUNK; j++) {
            let k = CHUNK - 1u - j;
            let i = begin + min(k, length - 1u) * width;
            let d = incoming[k] * load_along(half_along + i) + behind;
            sums[k] += d * load_along(i);
            decayed[k] += d * rate * past[k];
            of_rate += d * steps[k] * past[k];
            behind = decays[k] * d;
            tile[k * PITCH + lane] = select(0.0, d * steps[k] * inputs[k], is_channel);
        }
        if (is_channel) {
            store_carried(place, of_rate);
            store_carried(half_carried + place, behind);
        }
        workgroupBarrier();
        if (lane < SUMS && lane % CHUNK < length) {
            var sum = 0.0;
            for (var c = 0u; c < WORKGROUP; c++) {
                sum += tile[lane * PITCH + c];
            }
            let row = (lane / CHUNK * blocks + block) * params.batch * params.time + first + lane % CHUNK;
            store_parts(row * width + group * params.states + n, sum);
        }
        workgroupBarrier();
    }
    if (is_channel) {
        for (var k = 0u; k < CHUNK; k++) {
            if (k < length) {
                let row = (first + k) * params.channels + channel;
                store_rows(row, steps[k] * sums[k]);
                store_rows(half_rows + row, inputs[k] * sums[k] + decayed[k]);
            }
        }
    }
}
