// state[pair, split, row] = (largest score m, sum s of exp(score - m), sum of exp(score - m) * v)
//   over one split of the keys
//
// First of two steps of attention with few query rows; attention/combine merges the splits. A row
// is a (time, query head of the group) pair: all query heads that share a key head are done by one
// workgroup, so its keys and values are read once. With CAUSAL, key j is visible to time t if j <=
// t + position, where position is 0, or keys - time with ALIGN_END.
//
// query  (batch, heads, time, head_dim)            contiguous; time * group <= 4 * ROW_VECTORS
// key    (batch, kv_heads, capacity, head_dim)     contiguous; the first `keys` rows are read
// value  (batch, kv_heads, capacity, value_dim)    contiguous; value_dim <= 64 * COLUMN_BLOCKS
// mask   (batch, heads, time, keys)                any strides; added to the scores, or with
//        BOOL_MASK 1 = visible; read only with HAS_MASK
// state  (batch * kv_heads, splits, rows, value_dim + 2)
// grid   one workgroup per (batch, kv head, split); 64 lanes; a split holds a multiple of 64 keys,
//        chosen from `keys`; splits past the last key write nothing
// turns  (capacity // WORKGROUP // splits + 2) * (head_dim + head_dim // SLICE + 24) + 2 * head_dim
// source Dao et al. 2023, "Flash-Decoding for long-context inference"
// uses   attention_score
//
// Lane c makes the scores of key c of a step, and holds columns c, c + 64, ... of the output. Four
// rows lie in one vec4. Keys pass through workgroup memory in slices of 16 along head_dim, so that
// neighbours read neighbouring words. Sums are named, not an array: an array indexed in a loop
// would live in memory.

const ROW_VECTORS = 1u;
const COLUMN_BLOCKS = 1u;
const QUERY_VECTORS = 64u;
const CAUSAL = false;
const ALIGN_END = false;
const HAS_MASK = false;
const BOOL_MASK = false;
const SOFT_CAP = 0.0;

const WORKGROUP = 64u;
const SLICE = 16u;
const KEY_PITCH = SLICE + 1u;

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

var<workgroup> queries: array<vec4<f32>, QUERY_VECTORS>;
var<workgroup> key_tile: array<f32, WORKGROUP * KEY_PITCH>;
var<workgroup> scores: array<vec4<f32>, ROW_VECTORS * WORKGROUP>;

fn tensor_row(pair: u32, r: u32) -> u32 {
    return (pair * params.group + r % params.group) * params.time + r / params.group;
}

fn position() -> u32 {
    return select(0u, params.keys - params.time, ALIGN_END);
}

fn query_at(pair: u32, row: u32, d: u32) -> f32 {
    if (row < params.time * params.group) {
        return load_query(tensor_row(pair, row) * params.head_dim + d) * params.scale;
    }
    return 0.0;
}

// The score of a row with key j, hidden or seen.
fn seen_score(pair: u32, row: u32, j: u32, end: u32, product: f32) -> f32 {
    let time = row / params.group;
    if (time >= params.time || j >= end || (CAUSAL && j > time + position())) {
        return HIDDEN;
    }
    var score = product;
    if (SOFT_CAP != 0.0) {
        score = capped(score, SOFT_CAP);
    }
    if (HAS_MASK) {
        let head = pair % params.kv_heads * params.group + row % params.group;
        let bias = load_mask(pair / params.kv_heads * params.mask_batch + head * params.mask_head
            + time * params.mask_time + j * params.mask_key);
        return masked_score(score, bias, BOOL_MASK);
    }
    return settled(score);
}

fn seen_scores(pair: u32, row: u32, j: u32, end: u32, products: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        seen_score(pair, row, j, end, products.x), seen_score(pair, row + 1u, j, end, products.y),
        seen_score(pair, row + 2u, j, end, products.z),
            seen_score(pair, row + 3u, j, end, products.w));
}

// exp of differences that are at most zero
fn weights_of(differences: vec4<f32>) -> vec4<f32> {
    return exp(max(differences, vec4<f32>(-88.0)));
}

// The largest of one vec4 per lane for row vector v, known to every lane; the scores there are
// lost.
fn largest_of(lane: u32, v: u32, value: vec4<f32>) -> vec4<f32> {
    let base = v * WORKGROUP;
    scores[base + lane] = value;
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            scores[base + lane] = max(scores[base + lane], scores[base + lane + width]);
        }
        workgroupBarrier();
    }
    let result = scores[base];
    workgroupBarrier();
    return result;
}

fn sum_of(lane: u32, value: vec4<f32>) -> vec4<f32> {
    scores[lane] = value;
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            scores[lane] += scores[lane + width];
        }
        workgroupBarrier();
    }
    let result = scores[0];
    workgroupBarrier();
    return result;
}

// Column d of keys j, j + 4, j + 8 and j + 12; zero outside. All loads are in flight together.
fn four_keys(base: u32, j: u32, end: u32, d: u32) -> vec4<f32> {
    let rows = vec4<u32>(j, j + 4u, j + 8u, j + 12u);
    let at = base + min(rows, vec4<u32>(end - 1u)) * params.head_dim + min(d, params.head_dim - 1u);
    let keys = vec4<f32>(load_key(at.x), load_key(at.y), load_key(at.z), load_key(at.w));
    return select(vec4<f32>(), keys, (rows < vec4<u32>(end)) & vec4<bool>(d < params.head_dim));
}

fn store_keys(at: u32, keys: vec4<f32>) {
    key_tile[at] = keys.x;
    key_tile[at + 4u * KEY_PITCH] = keys.y;
    key_tile[at + 8u * KEY_PITCH] = keys.z;
    key_tile[at + 12u * KEY_PITCH] = keys.w;
}

// One column of values j to j + 3; zero past the end, where an infinite value times a weight of
// zero would be NaN.
fn four_values(base: u32, j: u32, end: u32, column: u32) -> vec4<f32> {
    let places = j + vec4<u32>(0u, 1u, 2u, 3u);
    let rows = min(places, vec4<u32>(end - 1u));
    let at = base + rows * params.value_dim + min(column, params.value_dim - 1u);
    let values = vec4<f32>(load_value(at.x), load_value(at.y), load_value(at.z), load_value(at.w));
    if (places.w < end) {
        return values;
    }
    return select(vec4<f32>(), values, places < vec4<u32>(end));
}

// sum + the products of the weights of keys i to i + 15, of row vector v, with their values in one
// column.
fn add_values(
    sum: vec4<f32>, v: u32, i: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>,
) -> vec4<f32> {
    let at = v * WORKGROUP + i;
    return add_four(add_four(add_four(add_four(sum, at, a), at + 4u, b), at + 8u, c), at + 12u, d);
}

fn add_four(sum: vec4<f32>, at: u32, values: vec4<f32>) -> vec4<f32> {
    let first = fma(scores[at + 1u], vec4<f32>(values.y),
        fma(scores[at], vec4<f32>(values.x), sum));
    return fma(scores[at + 3u], vec4<f32>(values.w),
        fma(scores[at + 2u], vec4<f32>(values.z), first));
}

fn store_column(base: u32, first_row: u32, column: u32, sums: vec4<f32>) {
    let rows = params.time * params.group;
    let pitch = params.value_dim + 2u;
    if (column < params.value_dim) {
        let at = base + first_row * pitch + 2u + column;
        if (first_row < rows) { state[at] = sums.x; }
        if (first_row + 1u < rows) { state[at + pitch] = sums.y; }
        if (first_row + 2u < rows) { state[at + 2u * pitch] = sums.z; }
        if (first_row + 3u < rows) { state[at + 3u * pitch] = sums.w; }
    }
}

fn store_head(base: u32, row: u32, largest: f32, total: f32) {
    if (row < params.time * params.group) {
        let at = base + row * (params.value_dim + 2u);
        state[at] = largest;
        state[at + 1u] = total;
    }
}

fn store_heads(base: u32, row: u32, largest: vec4<f32>, total: vec4<f32>) {
    store_head(base, row, largest.x, total.x);
    store_head(base, row + 1u, largest.y, total.y);
    store_head(base, row + 2u, largest.z, total.z);
    store_head(base, row + 3u, largest.w, total.w);
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
    if (split * chunk >= params.keys) {
        return;  // attention/combine reads only splits that hold keys
    }
    let key_base = pair * params.capacity * params.head_dim;
    let value_base = pair * params.capacity * params.value_dim;

    for (var i = lane; i < params.head_dim * ROW_VECTORS; i += WORKGROUP) {
        let d = i / ROW_VECTORS;
        let row = i % ROW_VECTORS * 4u;
        queries[i] = vec4<f32>(
            query_at(pair, row, d), query_at(pair, row + 1u, d), query_at(pair, row + 2u, d),
                query_at(pair, row + 3u, d));
    }

    var largest_0 = vec4<f32>(HIDDEN);
    var largest_1 = vec4<f32>(HIDDEN);
    var total_0 = vec4<f32>();  // of this lane's keys only; added up at the end
    var total_1 = vec4<f32>();
    var sum_00 = vec4<f32>();
    var sum_01 = vec4<f32>();
    var sum_02 = vec4<f32>();
    var sum_03 = vec4<f32>();
    var sum_10 = vec4<f32>();
    var sum_11 = vec4<f32>();
    var sum_12 = vec4<f32>();
    var sum_13 = vec4<f32>();

    for (var start = split * chunk; start < end; start += WORKGROUP) {
        let j = start + lane;
        var product_0 = vec4<f32>();
        var product_1 = vec4<f32>();
        for (var slice = 0u; slice < params.head_dim; slice += SLICE) {
            let d = slice + lane % SLICE;
            let row = lane / SLICE;
            let keys_0 = four_keys(key_base, start + row, end, d);
            let keys_1 = four_keys(key_base, start + row + 16u, end, d);
            let keys_2 = four_keys(key_base, start + row + 32u, end, d);
            let keys_3 = four_keys(key_base, start + row + 48u, end, d);
            let at = row * KEY_PITCH + lane % SLICE;
            store_keys(at, keys_0);
            store_keys(at + 16u * KEY_PITCH, keys_1);
            store_keys(at + 32u * KEY_PITCH, keys_2);
            store_keys(at + 48u * KEY_PITCH, keys_3);
            workgroupBarrier();
            let width = min(SLICE, params.head_dim - slice);
            for (var i = 0u; i < width; i++) {
                let k = vec4<f32>(key_tile[lane * KEY_PITCH + i]);
                product_0 = fma(queries[(slice + i) * ROW_VECTORS], k, product_0);
                if (ROW_VECTORS > 1u) {
                    product_1 = fma(queries[(slice + i) * ROW_VECTORS + ROW_VECTORS - 1u], k,
                        product_1);
                }
            }
            workgroupBarrier();
        }
        let score_0 = seen_scores(pair, 0u, j, end, product_0);
        let now_0 = max(largest_0, largest_of(lane, 0u, score_0));
        let factor_0 = weights_of(largest_0 - now_0);
        let weight_0 = select(weights_of(score_0 - now_0), vec4<f32>(),
            score_0 == vec4<f32>(HIDDEN));
        largest_0 = now_0;
        total_0 = total_0 * factor_0 + weight_0;
        sum_00 *= factor_0;
        if (COLUMN_BLOCKS > 1u) { sum_01 *= factor_0; }
        if (COLUMN_BLOCKS > 2u) { sum_02 *= factor_0; }
        if (COLUMN_BLOCKS > 3u) { sum_03 *= factor_0; }
        if (ROW_VECTORS > 1u) {
            let score_1 = seen_scores(pair, 4u, j, end, product_1);
            let now_1 = max(largest_1, largest_of(lane, ROW_VECTORS - 1u, score_1));
            let factor_1 = weights_of(largest_1 - now_1);
            let weight_1 = select(weights_of(score_1 - now_1), vec4<f32>(),
                score_1 == vec4<f32>(HIDDEN));
            largest_1 = now_1;
            total_1 = total_1 * factor_1 + weight_1;
            sum_10 *= factor_1;
            if (COLUMN_BLOCKS > 1u) { sum_11 *= factor_1; }
            if (COLUMN_BLOCKS > 2u) { sum_12 *= factor_1; }
            if (COLUMN_BLOCKS > 3u) { sum_13 *= factor_1; }
            scores[(ROW_VECTORS - 1u) * WORKGROUP + lane] = weight_1;
        }
        scores[lane] = weight_0;
        workgroupBarrier();

        for (var i = 0u; i < WORKGROUP && start + i < end; i += 16u) {
            let a_0 = four_values(value_base, start + i, end, lane);
            let b_0 = four_values(value_base, start + i + 4u, end, lane);
            let c_0 = four_values(value_base, start + i + 8u, end, lane);
            let d_0 = four_values(value_base, start + i + 12u, end, lane);
            sum_00 = add_values(sum_00, 0u, i, a_0, b_0, c_0, d_0);
            if (ROW_VECTORS > 1u) {
                sum_10 = add_values(sum_10, ROW_VECTORS - 1u, i, a_0, b_0, c_0, d_0);
            }
            if (COLUMN_BLOCKS > 1u) {
                let a_1 = four_values(value_base, start + i, end, lane + 64u);
                let b_1 = four_values(value_base, start + i + 4u, end, lane + 64u);
                let c_1 = four_values(value_base, start + i + 8u, end, lane + 64u);
                let d_1 = four_values(value_base, start + i + 12u, end, lane + 64u);
                sum_01 = add_values(sum_01, 0u, i, a_1, b_1, c_1, d_1);
                if (ROW_VECTORS > 1u) {
                    sum_11 = add_values(sum_11, ROW_VECTORS - 1u, i, a_1, b_1, c_1, d_1);
                }
            }
            if (COLUMN_BLOCKS > 2u) {
                let a_2 = four_values(value_base, start + i, end, lane + 128u);
                let b_2 = four_values(value_base, start + i + 4u, end, lane + 128u);
                let c_2 = four_values(value_base, start + i + 8u, end, lane + 128u);
                let d_2 = four_values(value_base, start + i + 12u, end, lane + 128u);
                sum_02 = add_values(sum_02, 0u, i, a_2, b_2, c_2, d_2);
                if (ROW_VECTORS > 1u) {
                    sum_12 = add_values(sum_12, ROW_VECTORS - 1u, i, a_2, b_2, c_2, d_2);
                }
            }
            if (COLUMN_BLOCKS > 3u) {
                let a_3 = four_values(value_base, start + i, end, lane + 192u);
                let b_3 = four_values(value_base, start + i + 4u, end, lane + 192u);
                let c_3 = four_values(value_base, start + i + 8u, end, lane + 192u);
                let d_3 = four_values(value_base, start + i + 12u, end, lane + 192u);
                sum_03 = add_values(sum_03, 0u, i, a_3, b_3, c_3, d_3);
                if (ROW_VECTORS > 1u) {
                    sum_13 = add_values(sum_13, ROW_VECTORS - 1u, i, a_3, b_3, c_3, d_3);
                }
            }
        }
        workgroupBarrier();
    }

    let base = place * rows * (params.value_dim + 2u);
    let sum_total_0 = sum_of(lane, total_0);
    if (lane == 0u) {
        store_heads(base, 0u, largest_0, sum_total_0);
    }
    store_column(base, 0u, lane, sum_00);
    if (COLUMN_BLOCKS > 1u) { store_column(base, 0u, lane + 64u, sum_01); }
    if (COLUMN_BLOCKS > 2u) { store_column(base, 0u, lane + 128u, sum_02); }
    if (COLUMN_BLOCKS > 3u) { store_column(base, 0u, lane + 192u, sum_03); }
    if (ROW_VECTORS > 1u) {
        let sum_total_1 = sum_of(lane, total_1);
        if (lane == 0u) {
            store_heads(base, 4u, largest_1, sum_total_1);
        }
        store_column(base, 4u, lane, sum_10);
        if (COLUMN_BLOCKS > 1u) { store_column(base, 4u, lane + 64u, sum_11); }
        if (COLUMN_BLOCKS > 2u) { store_column(base, 4u, lane + 128u, sum_12); }
        if (COLUMN_BLOCKS > 3u) { store_column(base, 4u, lane + 192u, sum_13); }
    }
}
