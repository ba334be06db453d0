// scores[pair, row, j] = softmax of scale * scores[pair, row, :] + mask over the visible j, in
//   place; with HAS_SINKS over one more, whose score is sinks[h] and whose weight is left out
//
// Second of three steps of attention without workgroup memory; the first makes the scores, the last
// multiplies by the values, both by matmul/direct. A row is a (head of the group, time) pair. With
// CAUSAL, key j is visible to time t if j <= t + position, where position is 0, or keys - time with
// ALIGN_END. A row that sees nothing becomes 0.
//
// mask    (batch, heads, time, keys)                 any strides; added to the scores, or with
//                                                    BOOL_MASK 1 = visible; read only with HAS_MASK
// sinks   (heads)                                    read only with HAS_SINKS
// scores  (batch * kv_heads, group * time, capacity)  the first `keys` columns are read and written
// grid    one invocation for a row
// turns   3 * capacity
// source  Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 2
// uses    attention_score

const CAUSAL = false;
const ALIGN_END = false;
const HAS_MASK = false;
const BOOL_MASK = false;
const SOFT_CAP = 0.0;
const HAS_SINKS = false;

const WORKGROUP = 16u;

struct Params {
    mask_offset: u32,
    sinks_offset: u32,
    rows: u32,
    kv_heads: u32,
    group: u32,
    time: u32,
    keys: u32,
    capacity: u32,
    mask_batch: u32,
    mask_head: u32,
    mask_time: u32,
    mask_key: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> mask: array<f32>;
@group(0) @binding(1) var<storage, read> sinks: array<f32>;
@group(0) @binding(2) var<storage, read_write> scores: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_mask(i: u32) -> f32 { return mask[params.mask_offset + i]; }

fn load_sinks(i: u32) -> f32 { return sinks[params.sinks_offset + i]; }

fn position() -> u32 {
    return select(0u, params.keys - params.time, ALIGN_END);
}

// A score with its mask, which begins at `at`; HIDDEN where the key is not visible.
fn masked(score: f32, at: u32) -> f32 {
    if (!HAS_MASK) {
        return settled(capped(score * params.scale, SOFT_CAP));
    }
    return masked_score(capped(score * params.scale, SOFT_CAP), load_mask(at), BOOL_MASK);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (row >= params.rows) {
        return;
    }
    let time = row % params.time;
    let head = row / params.time % (params.kv_heads * params.group);
    let batch = row / (params.time * params.kv_heads * params.group);
    let mask_base = batch * params.mask_batch + head * params.mask_head + time * params.mask_time;
    let base = row * params.capacity;
    var end = params.keys;
    if (CAUSAL) {
        end = min(end, time + position() + 1u);
    }
    var largest = HIDDEN;
    for (var j = 0u; j < end; j++) {
        let score = masked(scores[base + j], mask_base + j * params.mask_key);
        scores[base + j] = score;
        largest = max(largest, score);
    }
    var total = 0.0;
    for (var j = 0u; j < end; j++) {
        let score = scores[base + j];
        let weight = select(exp(max(score - largest, -88.0)), 0.0, score == HIDDEN);
        scores[base + j] = weight;
        total += weight;
    }
    if (HAS_SINKS) {
        total = with_sink(total, largest, load_sinks(head));
    }
    for (var j = 0u; j < end; j++) {
        scores[base + j] = attention_row(scores[base + j], total, largest);
    }
    for (var j = end; j < params.keys; j++) {
        scores[base + j] = 0.0;
    }
}
