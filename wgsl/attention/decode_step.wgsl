// One new position of a decoder's attention: its query and key are turned, its key and value go
// into the caches, and the query attends over the first `keys` rows of them, all in one launch
//
//   key[b, h, key_write, :]     = turned(key_row[b, h, 0, :], key_position)
//   value[b, h, value_write, :] = value_row[b, h, 0, :]
//   out = softmax(capped(scale * turned(query, query_position) @ key.T)) @ value
//
// where `turned` is the rotary embedding, and `capped(s)` is SOFT_CAP * tanh(s / SOFT_CAP), or s if
// that is 0. Rows that are written are taken from key_row and value_row and never from the caches,
// so it does not matter when they get there. With ALONE one workgroup sees all keys of its heads
// and writes the result; otherwise each split leaves a state for attention/combine, as
// attention/decode does.
//
// query      (batch, heads, 1, head_dim)            contiguous; heads = group * kv_heads, group <=
//                                                   4 * ROW_VECTORS
// key_row    (batch, kv_heads, 1, head_dim)         contiguous
// value_row  (batch, kv_heads, 1, head_dim)         contiguous
// cosines    (positions, half)                      these four begin where their buffers do
// sines      (positions, half)
// key        (batch, kv_heads, capacity, head_dim)  contiguous; head_dim = 4 * QUADS
// value      (batch, kv_heads, capacity, head_dim)  contiguous
// out        (batch, heads, 1, head_dim); without ALONE (batch * kv_heads, splits, group,
//            head_dim + 2)
// grid       one workgroup per (batch, kv head, split); a split holds a multiple of 64 keys
// fuses      -> out
// joins      attention/rotary, attention/rotary, attention/cache_write, attention/cache_write, attention/decode, attention/combine
// turns      (capacity // splits // STEP + 2) * ((KEY_LANES + PARTS) * ROW_VECTORS + STEP // PARTS + 4) + QUADS + 512
// source     Dao et al. 2023, "Flash-Decoding for long-context inference"
// uses       attention/turn, attention/decode_lanes, attention_score
//
// The lanes share keys and values as attention/decode_lanes says. The values of a step are asked
// for before its scores are known, the keys of the next step before these values are used. Sums
// are named, not an array: an array indexed in a loop would live in memory.

const QUADS = 16u;
const KEY_LANES = 4u;
const VALUE_LANES = 16u;
const ROW_VECTORS = 1u;
const INTERLEAVED = false;
const ALONE = true;
const SOFT_CAP = 0.0;

const WORKGROUP = 256u;
const HALF_STEP = WORKGROUP / KEY_LANES;
const STEP = 2u * HALF_STEP;
const SHARE = (QUADS + KEY_LANES - 1u) / KEY_LANES;
const SLICES = WORKGROUP / VALUE_LANES;
const VALUES = STEP / SLICES;
const PITCH = STEP + 1u;
const ROWS = 4u * ROW_VECTORS;
const PARTS = 16u;
const BLOCK = 64u;

struct Params {
    query_offset: u32,
    key_row_offset: u32,
    value_row_offset: u32,
    groups: u32,
    group: u32,
    splits: u32,
    capacity: u32,
    half: u32,
    keys: u32,
    query_position: u32,
    key_position: u32,
    key_write: u32,
    value_write: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> query: array<f32>;
@group(0) @binding(1) var<storage, read> key_row: array<f32>;
@group(0) @binding(2) var<storage, read> value_row: array<f32>;
@group(0) @binding(3) var<storage, read> cosines: array<f32>;
@group(0) @binding(4) var<storage, read> sines: array<f32>;
@group(0) @binding(5) var<storage, read_write> key: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> value: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_query(i: u32) -> f32 { return query[params.query_offset + i]; }
fn load_key_row(i: u32) -> f32 { return key_row[params.key_row_offset + i]; }
fn load_value_row(i: u32) -> f32 { return value_row[params.value_row_offset + i]; }
fn load_cosines(i: u32) -> f32 { return cosines[i]; }
fn load_sines(i: u32) -> f32 { return sines[i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

var<workgroup> queries: array<vec4<f32>, ROWS * QUADS>;
var<workgroup> new_key: array<vec4<f32>, QUADS>;
var<workgroup> shares: array<vec4<f32>, KEY_LANES * PITCH>;
var<workgroup> scores: array<vec4<f32>, ROW_VECTORS * STEP>;
var<workgroup> parts: array<vec4<f32>, ROW_VECTORS * PARTS>;

fn turned_query(base: u32, d: u32) -> f32 {
    let value = load_query(base + d);
    if (d >= 2u * params.half) {
        return value;
    }
    let pair = pair_of(d, params.query_position);
    return turned(value, load_query(base + pair.partner), pair);
}

fn turned_key(base: u32, d: u32) -> f32 {
    let value = load_key_row(base + d);
    if (d >= 2u * params.half) {
        return value;
    }
    let pair = pair_of(d, params.key_position);
    return turned(value, load_key_row(base + pair.partner), pair);
}

// A quad of a query of the group; zero for rows past the last head.
fn query_quad(first_head: u32, row: u32, quad: u32) -> vec4<f32> {
    if (row >= params.group) {
        return vec4<f32>();
    }
    let base = (first_head + row) * 4u * QUADS;
    let d = 4u * quad;
    return params.scale * vec4<f32>(turned_query(base, d), turned_query(base, d + 1u),
        turned_query(base, d + 2u), turned_query(base, d + 3u));
}

fn new_key_quad(pair: u32, quad: u32) -> vec4<f32> {
    let base = pair * 4u * QUADS;
    let d = 4u * quad;
    return vec4<f32>(turned_key(base, d), turned_key(base, d + 1u), turned_key(base, d + 2u),
        turned_key(base, d + 3u));
}

fn new_value_quad(pair: u32, quad: u32) -> vec4<f32> {
    let at = (pair * QUADS + quad) * 4u;
    return vec4<f32>(load_value_row(at), load_value_row(at + 1u), load_value_row(at + 2u),
        load_value_row(at + 3u));
}

// exp of differences that are at most zero
fn weights_of(differences: vec4<f32>) -> vec4<f32> {
    return exp(max(differences, vec4<f32>(-88.0)));
}

// The largest or the sum of what `scores` holds for row vector v, of which PARTS lanes put a part
// each; after a barrier `whole` knows it.
fn put_part(lane: u32, is_sum: bool) {
    if (lane >= ROW_VECTORS * PARTS) {
        return;
    }
    let first = lane / PARTS * STEP + lane % PARTS;
    var part = scores[first];
    for (var i = PARTS; i < STEP; i += PARTS) {
        let other = scores[first + i];
        part = select(max(part, other), part + other, is_sum);
    }
    parts[lane] = part;
}

fn whole(v: u32, is_sum: bool) -> vec4<f32> {
    var result = parts[v * PARTS];
    for (var k = 1u; k < PARTS; k++) {
        let other = parts[v * PARTS + k];
        result = select(max(result, other), result + other, is_sum);
    }
    return result;
}

fn element(v: vec4<f32>, r: u32) -> f32 {
    let half = select(v.xy, v.zw, (r & 2u) != 0u);
    return select(half.x, half.y, (r & 1u) != 0u);
}

// Rows `first` and `first` + 1 of the group, from the sums of all lanes.
fn store_rows(
    place: u32, first: u32, lane: u32, sum_0: vec4<f32>, sum_1: vec4<f32>, largest: vec4<f32>,
    total: vec4<f32>,
) {
    let columns = 4u * QUADS;
    shares[lane] = sum_0;
    shares[WORKGROUP + lane] = sum_1;
    workgroupBarrier();
    for (var i = lane; i < 2u * columns; i += WORKGROUP) {
        let row = first + i / columns;
        let d = i % columns;
        var sum = 0.0;
        for (var slice = 0u; slice < SLICES; slice++) {
            sum += shares[i / columns * WORKGROUP + slice * VALUE_LANES + d / 4u][d % 4u];
        }
        if (row < params.group && ALONE) {
            store_out((place * params.group + row) * columns + d,
                attention_row(sum, element(total, row), element(largest, row)));
        } else if (row < params.group) {
            let at = (place * params.group + row) * (columns + 2u);
            store_out(at + 2u + d, sum);
            if (d < 2u) {
                store_out(at + d, select(element(total, row), element(largest, row), d == 0u));
            }
        }
    }
    workgroupBarrier();
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
    let blocks = (params.keys + BLOCK - 1u) / BLOCK;
    let chunk = (blocks + params.splits - 1u) / params.splits * BLOCK;
    let first = split * chunk;
    let end = min(first + chunk, params.keys);
    if (split > 0u && first >= params.keys) {
        return;  // attention/combine reads only splits that hold keys
    }
    let base = pair * params.capacity * QUADS;
    var keys = load_keys(base, first, end, lane);
    for (var i = lane; i < (ROWS + 1u) * QUADS; i += WORKGROUP) {
        if (i < ROWS * QUADS) {
            queries[i] = query_quad(pair * params.group, i / QUADS, i % QUADS);
        } else {
            new_key[i % QUADS] = new_key_quad(pair, i % QUADS);
        }
    }
    workgroupBarrier();
    if (split == 0u && lane < QUADS) {
        key[base + params.key_write * QUADS + lane] = new_key[lane];
        value[base + params.value_write * QUADS + lane] = new_value_quad(pair, lane);
    }

    var largest_0 = vec4<f32>(HIDDEN);
    var largest_1 = vec4<f32>(HIDDEN);
    var total_0 = vec4<f32>();  // of this lane's keys only; added up at the end
    var total_1 = vec4<f32>();
    var sums_0 = Sums();
    var sums_1 = Sums();

    for (var start = first; start < end; start += STEP) {
        let is_seen = lane < STEP && start + lane < end;
        var values = load_values(base, start, end, lane);
        keys = with_new_key(keys, start, lane);
        put_shares(0u, lane, keys);
        workgroupBarrier();
        var score_0 = vec4<f32>(HIDDEN);
        var score_1 = vec4<f32>(HIDDEN);
        if (lane < STEP) {
            score_0 = score_of(lane, is_seen);
            scores[lane] = score_0;
        }
        if (ROW_VECTORS > 1u) {
            workgroupBarrier();
            put_shares(1u, lane, keys);
            workgroupBarrier();
            if (lane < STEP) {
                score_1 = score_of(lane, is_seen);
                scores[(ROW_VECTORS - 1u) * STEP + lane] = score_1;
            }
        }
        workgroupBarrier();
        put_part(lane, false);
        workgroupBarrier();
        let now_0 = max(largest_0, whole(0u, false));
        let weight_0 = select(weights_of(score_0 - now_0), vec4<f32>(),
            score_0 == vec4<f32>(HIDDEN));
        let factor_0 = weights_of(largest_0 - now_0);
        largest_0 = now_0;
        total_0 = total_0 * factor_0 + weight_0;
        sums_0 = rescaled(sums_0, factor_0);
        if (lane < STEP) {
            scores[lane] = weight_0;
        }
        if (ROW_VECTORS > 1u) {
            let now_1 = max(largest_1, whole(ROW_VECTORS - 1u, false));
            let weight_1 = select(weights_of(score_1 - now_1), vec4<f32>(),
                score_1 == vec4<f32>(HIDDEN));
            let factor_1 = weights_of(largest_1 - now_1);
            largest_1 = now_1;
            total_1 = total_1 * factor_1 + weight_1;
            sums_1 = rescaled(sums_1, factor_1);
            if (lane < STEP) {
                scores[(ROW_VECTORS - 1u) * STEP + lane] = weight_1;
            }
        }
        if (start + STEP < end) {
            keys = load_keys(base, start + STEP, end, lane);
        }
        workgroupBarrier();
        values = with_new_value(values, pair, start, lane);
        sums_0 = add_values(sums_0, 0u, lane, values);
        if (ROW_VECTORS > 1u) {
            sums_1 = add_values(sums_1, ROW_VECTORS - 1u, lane, values);
        }
    }

    workgroupBarrier();
    if (lane < STEP) {
        scores[lane] = total_0;
        if (ROW_VECTORS > 1u) {
            scores[(ROW_VECTORS - 1u) * STEP + lane] = total_1;
        }
    }
    workgroupBarrier();
    put_part(lane, true);
    workgroupBarrier();
    let all_0 = whole(0u, true);
    store_rows(place, 0u, lane, sums_0.row_0, sums_0.row_1, largest_0, all_0);
    if (params.group > 2u) {
        store_rows(place, 2u, lane, sums_0.row_2, sums_0.row_3, largest_0, all_0);
    }
    if (ROW_VECTORS > 1u) {
        let all_1 = whole(ROW_VECTORS - 1u, true);
        store_rows(place, 4u, lane, sums_1.row_0, sums_1.row_1, largest_1, all_1);
        if (params.group > 6u) {
            store_rows(place, 6u, lane, sums_1.row_2, sums_1.row_3, largest_1, all_1);
        }
    }
}
