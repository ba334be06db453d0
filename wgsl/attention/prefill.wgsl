// out[b, h, t, :] = softmax(scale * q[b, h, t, :] . k[b, kv, j, :] + mask[b, h, t, j] over visible j) . v[b, kv, j, :]
//
// with kv = h / group. With CAUSAL, key j is visible to query t if j <= t + position,
// where position is 0, or keys - time with ALIGN_END. A query that sees nothing gives 0.
//
// query  (batch, heads, time, head_dim)            contiguous
// key    (batch, kv_heads, capacity, head_dim)     contiguous; the first `keys` rows are read
// value  (batch, kv_heads, capacity, value_dim)    contiguous
// mask   (batch, heads, time, keys)                any strides; added to the scores, or with BOOL_MASK 1 = visible; read only with HAS_MASK
// out    (batch, heads, time, value_dim)
// grid   one workgroup per (batch, kv head, tile of 32 rows); a row is a (time, head of the group) pair, so that all
//        query heads that share a key head share its tiles; 128 lanes
// source Dao 2023, "FlashAttention-2", algorithm 1
//
// Scores of 32 rows by 32 keys are made from slices of 32 along head_dim in workgroup memory; the output
// stays in registers: lane (w, c) holds rows 8w to 8w + 7 at columns c, c + 32, ...

const COLUMN_BLOCKS = 2u;
const CAUSAL = false;
const ALIGN_END = false;
const HAS_MASK = false;
const BOOL_MASK = false;

const WORKGROUP = 128u;
const TILE = 32u;
const PITCH = 33u;
// Scores that are seen stay above HIDDEN, also where a mask adds the lowest finite number.
const HIDDEN = -3.4028234e38;
const LOWEST = -3.4e38;

struct Params {
    query_offset: u32,
    key_offset: u32,
    value_offset: u32,
    mask_offset: u32,
    groups: u32,
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
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_query(i: u32) -> f32 { return query[params.query_offset + i]; }
fn load_key(i: u32) -> f32 { return key[params.key_offset + i]; }
fn load_value(i: u32) -> f32 { return value[params.value_offset + i]; }
fn load_mask(i: u32) -> f32 { return mask[params.mask_offset + i]; }
fn store_out(i: u32, result: f32) { out[i] = result; }

var<workgroup> query_tile: array<f32, TILE * PITCH>;
var<workgroup> key_tile: array<f32, TILE * PITCH>;
var<workgroup> scores: array<f32, TILE * PITCH>;
var<workgroup> row_largest: array<f32, TILE>;
var<workgroup> row_total: array<f32, TILE>;
var<workgroup> row_rescale: array<f32, TILE>;

// The row of the query and output tensors that row r of a (batch, kv head) pair stands for.
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
    let rows = params.time * params.group;
    let tiles = (rows + TILE - 1u) / TILE;
    let pair = place / tiles;
    let first_row = (place % tiles) * TILE;
    let last_row = min(first_row + TILE, rows) - 1u;
    let key_base = pair * params.capacity * params.head_dim;
    let value_base = pair * params.capacity * params.value_dim;
    let warp = lane / TILE;
    let column = lane % TILE;

    var end = params.keys;
    if (CAUSAL) {
        end = min(end, last_row / params.group + position() + 1u);
    }
    if (lane < TILE) {
        row_largest[lane] = HIDDEN;
        row_total[lane] = 0.0;
    }
    var sums: array<f32, 8u * COLUMN_BLOCKS>;

    for (var start = 0u; start < end; start += TILE) {
        // scores: lane (w, c) makes rows 8w to 8w + 7 of key c
        var dots = array<f32, 8>();
        for (var slice = 0u; slice < params.head_dim; slice += TILE) {
            for (var r = warp; r < TILE; r += 4u) {
                let d = slice + column;
                var q = 0.0;
                if (first_row + r < rows && d < params.head_dim) {
                    q = load_query(tensor_row(pair, first_row + r) * params.head_dim + d);
                }
                query_tile[r * PITCH + column] = q;
                var k = 0.0;
                if (start + r < end && d < params.head_dim) {
                    k = load_key(key_base + (start + r) * params.head_dim + d);
                }
                key_tile[r * PITCH + column] = k;
            }
            workgroupBarrier();
            for (var d = 0u; d < TILE; d++) {
                let k = key_tile[column * PITCH + d];
                for (var r = 0u; r < 8u; r++) {
                    dots[r] = fma(query_tile[(warp * 8u + r) * PITCH + d], k, dots[r]);
                }
            }
            workgroupBarrier();
        }
        for (var r = 0u; r < 8u; r++) {
            let row = first_row + warp * 8u + r;
            let time = row / params.group;
            let j = start + column;
            var score = HIDDEN;
            if (row < rows && j < end && (!CAUSAL || j <= time + position())) {
                score = max(dots[r] * params.scale, LOWEST);
                if (HAS_MASK) {
                    let head = pair % params.kv_heads * params.group + row % params.group;
                    let bias = load_mask(pair / params.kv_heads * params.mask_batch + head * params.mask_head
                        + time * params.mask_time + j * params.mask_key);
                    let is_hidden = select(bitcast<u32>(bias) == 0xff800000u, bias == 0.0, BOOL_MASK);
                    score = select(max(select(score + bias, score, BOOL_MASK), LOWEST), HIDDEN, is_hidden);
                }
            }
            scores[(warp * 8u + r) * PITCH + column] = score;
        }
        workgroupBarrier();
        if (lane < TILE) {
            var largest = row_largest[lane];
            for (var j = 0u; j < TILE; j++) {
                largest = max(largest, scores[lane * PITCH + j]);
            }
            let rescale = exp(max(row_largest[lane] - largest, -88.0));
            var total = row_total[lane] * rescale;
            for (var j = 0u; j < TILE; j++) {
                let score = scores[lane * PITCH + j];
                let weight = select(exp(max(score - largest, -88.0)), 0.0, score == HIDDEN);
                scores[lane * PITCH + j] = weight;
                total += weight;
            }
            row_largest[lane] = largest;
            row_total[lane] = total;
            row_rescale[lane] = rescale;
        }
        workgroupBarrier();
        for (var r = 0u; r < 8u; r++) {
            let rescale = row_rescale[warp * 8u + r];
            for (var block = 0u; block < COLUMN_BLOCKS; block++) {
                sums[r * COLUMN_BLOCKS + block] *= rescale;
            }
        }
        let visible = min(TILE, end - start);
        for (var j = 0u; j < visible; j++) {
            for (var block = 0u; block < COLUMN_BLOCKS; block++) {
                let d = block * TILE + column;
                var v = 0.0;
                if (d < params.value_dim) {
                    v = load_value(value_base + (start + j) * params.value_dim + d);
                }
                for (var r = 0u; r < 8u; r++) {
                    sums[r * COLUMN_BLOCKS + block] = fma(
                        scores[(warp * 8u + r) * PITCH + j], v, sums[r * COLUMN_BLOCKS + block]);
                }
            }
        }
        workgroupBarrier();
    }

    for (var r = 0u; r < 8u; r++) {
        let row = first_row + warp * 8u + r;
        let total = row_total[warp * 8u + r];
        for (var block = 0u; block < COLUMN_BLOCKS; block++) {
            let d = block * TILE + column;
            if (row < rows && d < params.value_dim) {
                let result = select(sums[r * COLUMN_BLOCKS + block] / total, 0.0, total == 0.0);
                store_out(tensor_row(pair, row) * params.value_dim + d, result);
            }
        }
    }
}
