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

// What is known of each row of the tile: where it begins in the query, and in the mask, and how many
// keys it sees; none if there is no such row.
var<workgroup> row_query: array<u32, TILE>;
var<workgroup> row_mask: array<u32, TILE>;
var<workgroup> row_end: array<u32, TILE>;
var<workgroup> row_largest: array<vec4<f32>, ROW_VECTORS>;
var<workgroup> row_total: array<vec4<f32>, ROW_VECTORS>;

// The query head of row r of a (batch, kv head) pair.
fn head_of(pair: u32, r: u32) -> u32 {
    return pair % params.kv_heads * params.group + r % params.group;
}

fn position() -> u32 {
    return select(0u, params.keys - params.time, ALIGN_END);
}

// Notes what is known of row i of the tile, which is row r of the pair.
fn note_row(pair: u32, i: u32, r: u32, end: u32) {
    let row = min(r, params.time * params.group - 1u);
    let time = row / params.group;
    row_query[i] = ((pair * params.group + row % params.group) * params.time + time)
        * params.head_dim;
    if (HAS_MASK) {
        row_mask[i] = pair / params.kv_heads * params.mask_batch
            + head_of(pair, row) * params.mask_head + time * params.mask_time;
    }
    let visible = select(end, min(end, time + position() + 1u), CAUSAL);
    row_end[i] = select(0u, visible, r == row);
}

// Column d of rows i to i + 3 of the tile; zero outside.
fn four_queries(i: u32, d: u32) -> vec4<f32> {
    let at = min(d, params.head_dim - 1u)
        + vec4<u32>(row_query[i], row_query[i + 1u], row_query[i + 2u], row_query[i + 3u]);
    let queries = vec4<f32>(
        load_query(at.x), load_query(at.y), load_query(at.z), load_query(at.w));
    return select(vec4<f32>(), queries, vec4<bool>(d < params.head_dim));
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

// The scores of rows i to i + 3 with key j, hidden or seen.
fn seen_scores(i: u32, j: u32, products: vec4<f32>) -> vec4<f32> {
    let ends = vec4<u32>(row_end[i], row_end[i + 1u], row_end[i + 2u], row_end[i + 3u]);
    var score = products * params.scale;
    if (SOFT_CAP != 0.0) {
        score = vec4<f32>(capped(score.x, SOFT_CAP), capped(score.y, SOFT_CAP),
            capped(score.z, SOFT_CAP), capped(score.w, SOFT_CAP));
    }
    if (HAS_MASK) {
        let at = min(j, params.keys - 1u) * params.mask_key
            + vec4<u32>(row_mask[i], row_mask[i + 1u], row_mask[i + 2u], row_mask[i + 3u]);
        score = vec4<f32>(
            masked_score(score.x, load_mask(at.x), BOOL_MASK),
            masked_score(score.y, load_mask(at.y), BOOL_MASK),
            masked_score(score.z, load_mask(at.z), BOOL_MASK),
            masked_score(score.w, load_mask(at.w), BOOL_MASK));
    } else {
        score = settled_quad(score);
    }
    return select(score, vec4<f32>(HIDDEN), vec4<u32>(j) >= ends);
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

// Stores a column of a lane's rows: 8 from row i of the tile on. They go through the memory of the
// lane's scores, so that what stores them stands in the text once.
fn store_rows(
    pair: u32, first_row: u32, i: u32, column: u32, own: u32, low: vec4<f32>, high: vec4<f32>,
) {
    scores[own] = low;
    scores[own + 1u] = high;
    let rows = params.time * params.group - first_row;
    let end = select(0u, min(i + 8u, rows), column < params.value_dim);
    for (var k = i; k < end; k++) {
        let largest = row_largest[k / 4u][k % 4u];
        var total = row_total[k / 4u][k % 4u];
        let row = first_row + k;
        let head = head_of(pair, row);
        if (HAS_SINKS) {
            total = with_sink(total, largest, load_sinks(head));
        }
        let at = pair / params.kv_heads * params.out_batch + head * params.out_head
            + row / params.group * params.out_time + column;
        let sum = scores[own + (k - i) / 4u][k % 4u];
        store_out(at, attention_row(sum, total, largest));
    }
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
    // where the scores of the lane's key lie
    let own = column * PITCH + 2u * warp;

    var end = params.keys;
    if (CAUSAL) {
        end = min(end, last_row / params.group + position() + 1u);
    }
    if (lane < TILE) {
        note_row(pair, lane, first_row + lane, end);
    }
    workgroupBarrier();
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
            let query_0 = four_queries(4u * warp, d);
            let query_1 = four_queries(4u * warp + 16u, d);
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
        scores[own] = seen_scores(8u * warp, start + column, low);
        scores[own + 1u] = seen_scores(8u * warp + 4u, start + column, high);
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
    if (part == 0u) {
        var sum = vec4<f32>();
        for (var p = 0u; p < 16u; p++) {
            sum += slots[p * ROW_VECTORS + vector];
        }
        row_total[vector] = sum;
        row_largest[vector] = largest;
    }
    workgroupBarrier();
    let i = 8u * warp;
    let first = first_column + column;
    store_rows(pair, first_row, i, first, own, low_0, high_0);
    if (COLUMN_BLOCKS > 1u) {
        store_rows(pair, first_row, i, first + 32u, own, low_1, high_1);
    }
    if (COLUMN_BLOCKS > 2u) {
        store_rows(pair, first_row, i, first + 64u, own, low_2, high_2);
    }
    if (COLUMN_BLOCKS > 3u) {
        store_rows(pair, first_row, i, first + 96u, own, low_3, high_3);
    }
    if (COLUMN_BLOCKS > 4u) {
        store_rows(pair, first_row, i, first + 128u, own, low_4, high_4);
    }
    if (COLUMN_BLOCKS > 5u) {
        store_rows(pair, first_row, i, first + 160u, own, low_5, high_5);
    }
    if (COLUMN_BLOCKS > 6u) {
        store_rows(pair, first_row, i, first + 192u, own, low_6, high_6);
    }
    if (COLUMN_BLOCKS > 7u) {
        store_rows(pair, first_row, i, first + 224u, own, low_7, high_7);
    }
}
