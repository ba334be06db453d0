// starts[c] = the state that a chunk goes on with: carried[c] = exp(spans[c] * A) * carried[c - 1] + ends[c]
// of the chunk before it, from the first one on; BACK: of the chunk behind it, from the last one on
//
// ends     (batch, chunks, states, channels)
// spans    (batch, chunks, channels)
// A        (channels, states)
// initial  (batch, channels, states)          read only with HAS_INITIAL
// starts   (2, batch, chunks, states, channels)   BACK: the second of both
// grid     one invocation per batch, channel and state
// turns    chunks + AHEAD
// source   Blelloch 1990, "Prefix Sums and Their Applications", chapter 1.4

const WORKGROUP = 64u;
const BACK = false;
const HAS_INITIAL = true;
// Chunks that are loaded together, so that each does not wait for the one before it.
const AHEAD = 8u;

struct Params {
    ends_offset: u32,
    spans_offset: u32,
    A_offset: u32,
    initial_offset: u32,
    count: u32,
    chunks: u32,
    channels: u32,
    states: u32,
}

@group(0) @binding(0) var<storage, read> ends: array<f32>;
@group(0) @binding(1) var<storage, read> spans: array<f32>;
@group(0) @binding(2) var<storage, read> A: array<f32>;
@group(0) @binding(3) var<storage, read> initial: array<f32>;
@group(0) @binding(4) var<storage, read_write> starts: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_ends(i: u32) -> f32 { return ends[params.ends_offset + i]; }
fn load_spans(i: u32) -> f32 { return spans[params.spans_offset + i]; }
fn load_A(i: u32) -> f32 { return A[params.A_offset + i]; }
fn load_initial(i: u32) -> f32 { return initial[params.initial_offset + i]; }
fn store_starts(i: u32, value: f32) { starts[i] = value; }

fn chunk_of(batch: u32, j: u32) -> u32 {
    return batch * params.chunks + select(j, params.chunks - 1u - j, BACK);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let own = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (own >= params.count) {
        return;
    }
    let width = params.channels * params.states;
    let place = own % width;
    let batch = own / width;
    let base = select(0u, params.count * params.chunks, BACK);
    let channel = place % params.channels;
    let state = channel * params.states + place / params.channels;
    let rate = load_A(state);
    var carried = 0.0;
    if (HAS_INITIAL) {
        carried = load_initial(batch * width + state);
    }
    for (var j = 0u; j < params.chunks; j += AHEAD) {
        var decays: array<f32, AHEAD>;
        var added: array<f32, AHEAD>;
        for (var i = 0u; i < AHEAD; i++) {
            let chunk = chunk_of(batch, min(j + i, params.chunks - 1u));
            decays[i] = exp(load_spans(chunk * params.channels + channel) * rate);
            added[i] = load_ends(chunk * width + place);
        }
        for (var i = 0u; i < AHEAD; i++) {
            if (j + i < params.chunks) {
                store_starts(base + chunk_of(batch, j + i) * width + place, carried);
                carried = decays[i] * carried + added[i];
            }
        }
    }
}
