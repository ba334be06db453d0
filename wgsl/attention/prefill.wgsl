// out[b, h, t, :] = softmax(scale * q[b, h, t, :] . k[b, kv, j, :] + mask[b, h, t, j]) . v[b, kv, j]
//   over the keys j that are visible, and with HAS_SINKS one more of score sinks[h] and value 0
//
// with kv = h / group. With CAUSAL, key j is visible to query t if j <= t + position, where
// position is 0, or keys - time with ALIGN_END. A query that sees nothing gives 0.
//
// query  (batch, heads, time, head_dim)            contiguous
// key    (batch, kv_heads, capacity, head_dim)     contiguous; the first `keys` rows are read
// value  (batch, kv_heads, capacity, value_dim)    contiguous
// mask   (batch, heads, time, keys)                any strides; added to the scores, or with
//        BOOL_MASK 1 = visible; read only with HAS_MASK
// sinks  (heads)                                   read only with HAS_SINKS
// out    (batch, heads, time, value_dim)          strides out_batch, out_head, out_time and 1
// grid   one workgroup per (batch, kv head, tile of 32 rows, 32 * COLUMN_BLOCKS columns of value);
//        128 lanes; a row is a (time, head of the group) pair, so that all query heads that share a
//        key head share its tiles
// fuses  -> out
// turns  (capacity // TILE + 1) * (9 * (head_dim // TILE + 1) + 26) + 64
// source Dao 2023, "FlashAttention-2", algorithm 1
// uses   attention_score
//
// Lane (w, c) of the four warps of 32 makes the scores of rows 8w to 8w + 7 with key c, and holds
// columns c, c + 32, ... of these rows of the output. Four neighbouring rows lie in one vec4.
// Scores come from slices of 32 along head_dim in workgroup memory. Sums are named, not an array:
// an array indexed in a loop would live in memory.

const COLUMN_BLOCKS = 2u;
const CAUSAL = false;
const ALIGN_END = false;
const HAS_MASK = false;
const BOOL_MASK = false;
const SOFT_CAP = 0.0;
const HAS_SINKS = false;

const WORKGROUP = 128u;
const TILE = 32u;
const ROW_VECTORS = 8u;
const PITCH = ROW_VECTORS + 1u;
const KEY_PITCH = 33u;

struct Params {
    query_offset: u32,
    key_offset: u32,
    value_offset: u32,
    mask_offset: u32,
    sinks_offset: u32,
    groups: u32,
    kv_heads: u32,
    group: u32,
    time: u32,
    keys: u32,
    capacity: u32,
    head_dim: u32,
    value_dim: u32,
    column_tiles: u32,
    mask_batch: u32,
    mask_head: u32,
    mask_time: u32,
    mask_key: u32,
    out_batch: u32,
    out_head: u32,
    out_time: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> query: array<f32>;
@group(0) @binding(1) var<storage, read> key: array<f32>;
@group(0) @binding(2) var<storage, read> value: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;
@group(0) @binding(4) var<storage, read> sinks: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_query(i: u32) -> f32 { return query[params.query_offset + i]; }
fn load_key(i: u32) -> f32 { return key[params.key_offset + i]; }
fn load_value(i: u32) -> f32 { return value[params.value_offset + i]; }
fn load_mask(i: u32) -> f32 { return mask[params.mask_offset + i]; }
fn load_sinks(i: u32) -> f32 { return sinks[params.sinks_offset + i]; }
fn store_out(i: u32, result: f32) { out[i] = result; }

var<workgroup> query_tile: array<vec4<f32>, TILE * PITCH>;
var<workgroup> key_tile: array<f32, TILE * KEY_PITCH>;
var<workgroup> scores: array<vec4<f32>, TILE * PITCH>;
var<workgroup> slots: array<vec4<f32>, WORKGROUP>;
var<workgroup> row_factor: array<vec4<f32>, ROW_VECTORS>;

// The row of the query tensor that row r of a (batch, kv head) pair stands for.
fn query_row(pair: u32, r: u32) -> u32 {
    return (pair * params.group + r % params.group) * params.time + r / params.group;
}

// Where the same row of the output begins.
fn out_row(pair: u32, r: u32) -> u32 {
    let head = pair % params.kv_heads * params.group + r % params.group;
    return pair / params.kv_heads * params.out_batch + head * params.out_head
        + r / params.group * params.out_time;
}

fn position() -> u32 {
    return select(0u, params.keys - params.time, ALIGN_END);
}

fn query_at(pair: u32, row: u32, d: u32) -> f32 {
    let is_there = row < params.time * params.group && d < params.head_dim;
    let at = query_row(pair, row) * params.head_dim + d;
    return select(0.0, load_query(select(0u, at, is_there)), is_there);
}

// Column d of four neighbouring rows; zero outside.
fn four_queries(pair: u32, row: u32, d: u32) -> vec4<f32> {
    return vec4<f32>(
        query_at(pair, row, d), query_at(pair, row + 1u, d), query_at(pair, row + 2u, d),
            query_at(pair, row + 3u, d));
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

// The score of a row with key j, hidden or seen.
fn seen_score(pair: u32, row: u32, j: u32, end: u32, product: f32) -> f32 {
    let time = row / params.group;
    let is_hidden = time >= params.time || j >= end || (CAUSAL && j > time + position());
    var score = product * params.scale;
    if (SOFT_CAP != 0.0) {
        score = capped(score, SOFT_CAP);
    }
    if (HAS_MASK) {
        if (is_hidden) {
            return HIDDEN;
        }
        let head = pair % params.kv_heads * params.group + row % params.group;
        let bias = load_mask(pair / params.kv_heads * params.mask_batch + head * params.mask_head
            + time * params.mask_time + j * params.mask_key);
        return masked_score(score, bias, BOOL_MASK);
    }
    return select(settled(score), HIDDEN, is_hidden);
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

// sum + the products of the weights of four keys, for four rows, with their values in one column.
fn add_values(sum: vec4<f32>, at: u32, values: vec4<f32>) -> vec4<f32> {
    let first = fma(scores[at + PITCH], vec4<f32>(values.y),
        fma(scores[at], vec4<f32>(values.x), sum));
    return fma(scores[at + 3u * PITCH], vec4<f32>(values.w),
        fma(scores[at + 2u * PITCH], vec4<f32>(values.z), first));
}

fn store_value(pair: u32, row: u32, column: u32, sum: f32, total: f32, largest: f32) {
    if (row < params.time * params.group && column < params.value_dim) {
        var all = total;
        if (HAS_SINKS) {
            let head = pair % params.kv_heads * params.group + row % params.group;
            all = with_sink(total, largest, load_sinks(head));
        }
        store_out(out_row(pair, row) + column, attention_row(sum, all, largest));
    }
}

fn store_values(
    pair: u32, row: u32, column: u32, sums: vec4<f32>, totals: vec4<f32>, largest: vec4<f32>,
) {
    store_value(pair, row, column, sums.x, totals.x, largest.x);
    store_value(pair, row + 1u, column, sums.y, totals.y, largest.y);
    store_value(pair, row + 2u, column, sums.z, totals.z, largest.z);
    store_value(pair, row + 3u, column, sums.w, totals.w, largest.w);
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
    let first_column = place % params.column_tiles * TILE * COLUMN_BLOCKS;
    let pair = place / (params.column_tiles * tiles);
    let first_row = (place / params.column_tiles % tiles) * TILE;
    let last_row = min(first_row + TILE, rows) - 1u;
    let key_base = pair * params.capacity * params.head_dim;
    let value_base = pair * params.capacity * params.value_dim;
    let warp = lane / TILE;
    let column = lane % TILE;
    // in the softmax, a lane has one vec4 of rows and the keys part and part + 16
    let vector = lane % ROW_VECTORS;
    let part = lane / ROW_VECTORS;

    var end = params.keys;
    if (CAUSAL) {
        end = min(end, last_row / params.group + position() + 1u);
    }
    var largest = vec4<f32>(HIDDEN);
    var total = vec4<f32>();  // of this lane's keys only; added up at the end
    var low_0 = vec4<f32>();
    var high_0 = vec4<f32>();
    var low_1 = vec4<f32>();
    var high_1 = vec4<f32>();
    var low_2 = vec4<f32>();
    var high_2 = vec4<f32>();
    var low_3 = vec4<f32>();
    var high_3 = vec4<f32>();
    var low_4 = vec4<f32>();
    var high_4 = vec4<f32>();
    var low_5 = vec4<f32>();
    var high_5 = vec4<f32>();
    var low_6 = vec4<f32>();
    var high_6 = vec4<f32>();
    var low_7 = vec4<f32>();
    var high_7 = vec4<f32>();

    for (var start = 0u; start < end; start += TILE) {
        var low = vec4<f32>();
        var high = vec4<f32>();
        for (var slice = 0u; slice < params.head_dim; slice += TILE) {
            let d = slice + column;
            let query_0 = four_queries(pair, first_row + 4u * warp, d);
            let query_1 = four_queries(pair, first_row + 4u * warp + 16u, d);
            let keys_0 = four_keys(key_base, start + warp, end, d);
            let keys_1 = four_keys(key_base, start + warp + 16u, end, d);
            query_tile[column * PITCH + warp] = query_0;
            query_tile[column * PITCH + warp + 4u] = query_1;
            store_keys(warp * KEY_PITCH + column, keys_0);
            store_keys((warp + 16u) * KEY_PITCH + column, keys_1);
            workgroupBarrier();
            for (var i = 0u; i < TILE; i += 4u) {
                let at = i * PITCH + 2u * warp;
                let keys = vec4<f32>(
                    key_tile[column * KEY_PITCH + i], key_tile[column * KEY_PITCH + i + 1u],
                    key_tile[column * KEY_PITCH + i + 2u], key_tile[column * KEY_PITCH + i + 3u]);
                low = fma(query_tile[at], vec4<f32>(keys.x), low);
                high = fma(query_tile[at + 1u], vec4<f32>(keys.x), high);
                low = fma(query_tile[at + PITCH], vec4<f32>(keys.y), low);
                high = fma(query_tile[at + PITCH + 1u], vec4<f32>(keys.y), high);
                low = fma(query_tile[at + 2u * PITCH], vec4<f32>(keys.z), low);
                high = fma(query_tile[at + 2u * PITCH + 1u], vec4<f32>(keys.z), high);
                low = fma(query_tile[at + 3u * PITCH], vec4<f32>(keys.w), low);
                high = fma(query_tile[at + 3u * PITCH + 1u], vec4<f32>(keys.w), high);
            }
            workgroupBarrier();
        }
        let row = first_row + 8u * warp;
        let at = column * PITCH + 2u * warp;
        scores[at] = seen_scores(pair, row, start + column, end, low);
        scores[at + 1u] = seen_scores(pair, row + 4u, start + column, end, high);
        workgroupBarrier();

        let score_0 = scores[part * PITCH + vector];
        let score_1 = scores[(part + 16u) * PITCH + vector];
        slots[lane] = max(score_0, score_1);
        workgroupBarrier();
        var now = largest;
        for (var p = 0u; p < 16u; p++) {
            now = max(now, slots[p * ROW_VECTORS + vector]);
        }
        let factor = weights_of(largest - now);
        let weight_0 = select(weights_of(score_0 - now), vec4<f32>(), score_0 == vec4<f32>(HIDDEN));
        let weight_1 = select(weights_of(score_1 - now), vec4<f32>(), score_1 == vec4<f32>(HIDDEN));
        largest = now;
        total = total * factor + (weight_0 + weight_1);
        scores[part * PITCH + vector] = weight_0;
        scores[(part + 16u) * PITCH + vector] = weight_1;
        if (part == 0u) {
            row_factor[vector] = factor;
        }
        workgroupBarrier();

        let factor_low = row_factor[2u * warp];
        let factor_high = row_factor[2u * warp + 1u];
        low_0 *= factor_low; high_0 *= factor_high;
        if (COLUMN_BLOCKS > 1u) { low_1 *= factor_low; high_1 *= factor_high; }
        if (COLUMN_BLOCKS > 2u) { low_2 *= factor_low; high_2 *= factor_high; }
        if (COLUMN_BLOCKS > 3u) { low_3 *= factor_low; high_3 *= factor_high; }
        if (COLUMN_BLOCKS > 4u) { low_4 *= factor_low; high_4 *= factor_high; }
        if (COLUMN_BLOCKS > 5u) { low_5 *= factor_low; high_5 *= factor_high; }
        if (COLUMN_BLOCKS > 6u) { low_6 *= factor_low; high_6 *= factor_high; }
        if (COLUMN_BLOCKS > 7u) { low_7 *= factor_low; high_7 *= factor_high; }
        let visible = min(TILE, end - start);
        for (var j = 0u; j < visible; j += 4u) {
            let at = j * PITCH + 2u * warp;
            let first = first_column + column;
            let values_0 = four_values(value_base, start + j, end, first);
            low_0 = add_values(low_0, at, values_0);
            high_0 = add_values(high_0, at + 1u, values_0);
            if (COLUMN_BLOCKS > 1u) {
                let values_1 = four_values(value_base, start + j, end, first + 32u);
                low_1 = add_values(low_1, at, values_1);
                high_1 = add_values(high_1, at + 1u, values_1);
            }
            if (COLUMN_BLOCKS > 2u) {
                let values_2 = four_values(value_base, start + j, end, first + 64u);
                low_2 = add_values(low_2, at, values_2);
                high_2 = add_values(high_2, at + 1u, values_2);
            }
            if (COLUMN_BLOCKS > 3u) {
                let values_3 = four_values(value_base, start + j, end, first + 96u);
                low_3 = add_values(low_3, at, values_3);
                high_3 = add_values(high_3, at + 1u, values_3);
            }
            if (COLUMN_BLOCKS > 4u) {
                let values_4 = four_values(value_base, start + j, end, first + 128u);
                low_4 = add_values(low_4, at, values_4);
                high_4 = add_values(high_4, at + 1u, values_4);
            }
            if (COLUMN_BLOCKS > 5u) {
                let values_5 = four_values(value_base, start + j, end, first + 160u);
                low_5 = add_values(low_5, at, values_5);
                high_5 = add_values(high_5, at + 1u, values_5);
            }
            if (COLUMN_BLOCKS > 6u) {
                let values_6 = four_values(value_base, start + j, end, first + 192u);
                low_6 = add_values(low_6, at, values_6);
                high_6 = add_values(high_6, at + 1u, values_6);
            }
            if (COLUMN_BLOCKS > 7u) {
                let values_7 = four_values(value_base, start + j, end, first + 224u);
                low_7 = add_values(low_7, at, values_7);
                high_7 = add_values(high_7, at + 1u, values_7);
            }
        }
        workgroupBarrier();
    }

    slots[lane] = total;
    workgroupBarrier();
    var totals_low = vec4<f32>();
    var totals_high = vec4<f32>();
    for (var p = 0u; p < 16u; p++) {
        totals_low += slots[p * ROW_VECTORS + 2u * warp];
        totals_high += slots[p * ROW_VECTORS + 2u * warp + 1u];
    }
    workgroupBarrier();
    if (part == 0u) {
        slots[vector] = largest;
    }
    workgroupBarrier();
    let largest_low = slots[2u * warp];
    let largest_high = slots[2u * warp + 1u];
    let row = first_row + 8u * warp;
    let first = first_column + column;
    store_values(pair, row, first, low_0, totals_low, largest_low);
    store_values(pair, row + 4u, first, high_0, totals_high, largest_high);
    if (COLUMN_BLOCKS > 1u) {
        store_values(pair, row, first + 32u, low_1, totals_low, largest_low);
        store_values(pair, row + 4u, first + 32u, high_1, totals_high, largest_high);
    }
    if (COLUMN_BLOCKS > 2u) {
        store_values(pair, row, first + 64u, low_2, totals_low, largest_low);
        store_values(pair, row + 4u, first + 64u, high_2, totals_high, largest_high);
    }
    if (COLUMN_BLOCKS > 3u) {
        store_values(pair, row, first + 96u, low_3, totals_low, largest_low);
        store_values(pair, row + 4u, first + 96u, high_3, totals_high, largest_high);
    }
    if (COLUMN_BLOCKS > 4u) {
        store_values(pair, row, first + 128u, low_4, totals_low, largest_low);
        store_values(pair, row + 4u, first + 128u, high_4, totals_high, largest_high);
    }
    if (COLUMN_BLOCKS > 5u) {
        store_values(pair, row, first + 160u, low_5, totals_low, largest_low);
        store_values(pair, row + 4u, first + 160u, high_5, totals_high, largest_high);
    }
    if (COLUMN_BLOCKS > 6u) {
        store_values(pair, row, first + 192u, low_6, totals_low, largest_low);
        store_values(pair, row + 4u, first + 192u, high_6, totals_high, largest_high);
    }
    if (COLUMN_BLOCKS > 7u) {
        store_values(pair, row, first + 224u, low_7, totals_low, largest_low);
        store_values(pair, row + 4u, first + 224u, high_7, totals_high, largest_high);
    }
}
