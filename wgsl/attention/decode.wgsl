// state[pair, split, row] = (largest score m, sum s of exp(score - m), sum of exp(score - m) * v) over one split of the keys
//
// First of two steps of attention with few query rows; attention/combine merges the splits.
// A row is a (time, query head of the group) pair: all query heads that share a key head are done by one workgroup,
// so its keys and values are read once. With CAUSAL, key j is visible to time t if j <= t + position,
// where position is 0, or keys - time with ALIGN_END.
//
// query  (batch, heads, time, head_dim)            contiguous; time * group <= ROWS
// key    (batch, kv_heads, capacity, head_dim)     contiguous; the first `keys` rows are read
// value  (batch, kv_heads, capacity, value_dim)    contiguous
// mask   (batch, heads, time, keys)                any strides; added to the scores, or with BOOL_MASK 1 = visible; read only with HAS_MASK
// state  (batch * kv_heads, splits, rows, value_dim + 2)
// grid   one workgroup per (batch, kv head, split); 64 lanes; a split holds a multiple of 64 keys, chosen from `keys`
// source Dao et al. 2023, "Flash-Decoding for long-context inference"
//
// Scores: lane c dots key c of the step with every row. Output: lane c holds columns c, c + 64, ... of every row.

const ROWS = 4u;
const COLUMN_BLOCKS = 1u;
const QUERY_FLOATS = 256u;
const CAUSAL = false;
const ALIGN_END = false;
const HAS_MASK = false;
const BOOL_MASK = false;

const WORKGROUP = 64u;
// Scores that are seen stay above HIDDEN, also where a mask adds the lowest finite number.
const HIDDEN = -3.4028234e38;
const LOWEST = -3.4e38;

struct Params {
    query_offset: u32,
    key_offset: u32,
    value_offset: u32,
    mask_offset: u32,
    groups: u32,
    splits: u32,
    kv_heads: u32,
    group: u32,
    time: u32,
    keys: u32,
    capacity: u32,
    head_dim: u32,
    value_dim: u32,
    mask_batch: u32,
    mask_head: u32,
    mask_time: u32,
    mask_key: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> query: array<f32>;
@group(0) @binding(1) var<storage, read> key: array<f32>;
@group(0) @binding(2) var<storage, read> value: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_query(i: u32) -> f32 { return query[params.query_offset + i]; }
fn load_key(i: u32) -> f32 { return key[params.key_offset + i]; }
fn load_value(i: u32) -> f32 { return value[params.value_offset + i]; }
fn load_mask(i: u32) -> f32 { return mask[params.mask_offset + i]; }

var<workgroup> queries: array<f32, QUERY_FLOATS>;
var<workgroup> scores: array<f32, ROWS * WORKGROUP>;
var<workgroup> slots: array<f32, ROWS * WORKGROUP>;

fn tensor_row(pair: u32, r: u32) -> u32 {
    return (pair * params.group + r % params.group) * params.time + r / params.group;
}

fn position() -> u32 {
    return select(0u, params.keys - params.time, ALIGN_END);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = id.y * count.x + id.x;
    if (place >= params.groups) {
        return;
    }
    let pair = place / params.splits;
    let split = place % params.splits;
    let rows = params.time * params.group;
    let steps = (params.keys + WORKGROUP - 1u) / WORKGROUP;
    let chunk = (steps + params.splits - 1u) / params.splits * WORKGROUP;
    let end = min((split + 1u) * chunk, params.keys);
    let key_base = pair * params.capacity * params.head_dim;
    let value_base = pair * params.capacity * params.value_dim;

    for (var i = lane; i < rows * params.head_dim; i += WORKGROUP) {
        let row = i / params.head_dim;
        queries[i] = load_query(tensor_row(pair, row) * params.head_dim + i % params.head_dim) * params.scale;
    }
    workgroupBarrier();

    var largest: array<f32, ROWS>;
    var total: array<f32, ROWS>;  // of this lane's keys only; added up at the end
    var sums: array<f32, ROWS * COLUMN_BLOCKS>;
    for (var row = 0u; row < ROWS; row++) {
        largest[row] = HIDDEN;
    }

    for (var start = split * chunk; start < end; start += WORKGROUP) {
        let j = start + lane;
        var dots = array<f32, ROWS>();
        if (j < end) {
            for (var d = 0u; d < params.head_dim; d++) {
                let k = load_key(key_base + j * params.head_dim + d);
                for (var row = 0u; row < ROWS; row++) {
                    if (row < rows) {
                        dots[row] = fma(queries[row * params.head_dim + d], k, dots[row]);
                    }
                }
            }
        }
        for (var row = 0u; row < ROWS; row++) {
            let time = row / params.group;
            var score = HIDDEN;
            if (row < rows && j < end && (!CAUSAL || j <= time + position())) {
                score = max(dots[row], LOWEST);
                if (HAS_MASK) {
                    let head = pair % params.kv_heads * params.group + row % params.group;
                    let bias = load_mask(pair / params.kv_heads * params.mask_batch + head * params.mask_head
                        + time * params.mask_time + j * params.mask_key);
                    let is_hidden = select(bitcast<u32>(bias) == 0xff800000u, bias == 0.0, BOOL_MASK);
                    score = select(max(select(score + bias, score, BOOL_MASK), LOWEST), HIDDEN, is_hidden);
                }
            }
            dots[row] = score;
            slots[row * WORKGROUP + lane] = dots[row];
        }
        workgroupBarrier();
        for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
            if (lane < width) {
                for (var row = 0u; row < ROWS; row++) {
                    let i = row * WORKGROUP + lane;
                    slots[i] = max(slots[i], slots[i + width]);
                }
            }
            workgroupBarrier();
        }
        for (var row = 0u; row < ROWS; row++) {
            let now = max(largest[row], slots[row * WORKGROUP]);
            let rescale = exp(max(largest[row] - now, -88.0));
            let weight = select(exp(max(dots[row] - now, -88.0)), 0.0, dots[row] == HIDDEN);
            largest[row] = now;
            total[row] = total[row] * rescale + weight;
            scores[row * WORKGROUP + lane] = weight;
            for (var block = 0u; block < COLUMN_BLOCKS; block++) {
                sums[row * COLUMN_BLOCKS + block] *= rescale;
            }
        }
        workgroupBarrier();
        let visible = min(WORKGROUP, end - start);
        for (var i = 0u; i < visible; i++) {
            for (var block = 0u; block < COLUMN_BLOCKS; block++) {
                let d = block * WORKGROUP + lane;
                if (d < params.value_dim) {
                    let v = load_value(value_base + (start + i) * params.value_dim + d);
                    for (var row = 0u; row < ROWS; row++) {
                        sums[row * COLUMN_BLOCKS + block] = fma(
                            scores[row * WORKGROUP + i], v, sums[row * COLUMN_BLOCKS + block]);
                    }
                }
            }
        }
        workgroupBarrier();
    }

    for (var row = 0u; row < ROWS; row++) {
        slots[row * WORKGROUP + lane] = total[row];
    }
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            for (var row = 0u; row < ROWS; row++) {
                slots[row * WORKGROUP + lane] += slots[row * WORKGROUP + lane + width];
            }
        }
        workgroupBarrier();
    }
    for (var row = 0u; row < ROWS; row++) {
        if (row < rows) {
            let base = (place * rows + row) * (params.value_dim + 2u);
            if (lane == 0u) {
                state[base] = largest[row];
                state[base + 1u] = slots[row * WORKGROUP];
            }
            for (var block = 0u; block < COLUMN_BLOCKS; block++) {
                let d = block * WORKGROUP + lane;
                if (d < params.value_dim) {
                    state[base + 2u + d] = sums[row * COLUMN_BLOCKS + block];
                }
            }
        }
    }
}
