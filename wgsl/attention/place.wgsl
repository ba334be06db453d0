// What brings new positions to a decoder's attention: queries and keys are turned, keys and values
// go into the caches, all in one launch
//
//   out[b, h, t, :]                 = turned(query[b, h, t, :], query_position + t)
//   key[b, h, key_write + t, :]     = turned(key_row[b, h, t, :], key_position + t)
//   value[b, h, value_write + t, :] = value_row[b, h, t, :]
//
// where `turned` is the rotary embedding.
//
// query      (batch, heads, time, head_dim)         any strides of (batch, head, time, column); as
// key_row    (batch, kv_heads, time, head_dim)      many heads as query_heads, key_heads and
// value_row  (batch, kv_heads, time, head_dim)      value_heads say follow each other in a batch
// cosines    (positions, half)                      these two begin where their buffers do
// sines      (positions, half)
// out        (batch, heads, time, head_dim)
// key        (batch, kv_heads, capacity, head_dim)  contiguous
// value      (batch, kv_heads, capacity, head_dim)  contiguous
// grid       one workgroup per WORKGROUP elements of query, key_row and value_row, one lane each
// joins      attention/rotary, attention/rotary, attention/cache_write, attention/cache_write
// source     Su et al. 2021, "RoFormer", equation 34
// uses       attention/turn

const WORKGROUP = 64u;
const INTERLEAVED = false;

struct Params {
    query_strides: vec4<u32>,
    key_strides: vec4<u32>,
    value_strides: vec4<u32>,
    query_offset: u32,
    key_row_offset: u32,
    value_row_offset: u32,
    key_offset: u32,
    value_offset: u32,
    query_count: u32,
    row_count: u32,
    query_heads: u32,
    key_heads: u32,
    value_heads: u32,
    time: u32,
    head_dim: u32,
    half: u32,
    capacity: u32,
    query_position: u32,
    key_position: u32,
    key_write: u32,
    value_write: u32,
}

@group(0) @binding(0) var<storage, read> query: array<f32>;
@group(0) @binding(1) var<storage, read> key_row: array<f32>;
@group(0) @binding(2) var<storage, read> value_row: array<f32>;
@group(0) @binding(3) var<storage, read> cosines: array<f32>;
@group(0) @binding(4) var<storage, read> sines: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
@group(0) @binding(6) var<storage, read_write> key: array<f32>;
@group(0) @binding(7) var<storage, read_write> value: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_query(i: u32) -> f32 { return query[params.query_offset + i]; }
fn load_key_row(i: u32) -> f32 { return key_row[params.key_row_offset + i]; }
fn load_value_row(i: u32) -> f32 { return value_row[params.value_row_offset + i]; }
fn load_cosines(i: u32) -> f32 { return cosines[i]; }
fn load_sines(i: u32) -> f32 { return sines[i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn store_key(i: u32, number: f32) { key[params.key_offset + i] = number; }
fn store_value(i: u32, number: f32) { value[params.value_offset + i] = number; }

// Where an element of (batch, heads, time, head_dim) stands.
struct Place {
    head: u32,  // of all batches
    time: u32,
    column: u32,
}

fn place_of(i: u32) -> Place {
    let row = i / params.head_dim;
    return Place(row / params.time, row % params.time, i % params.head_dim);
}

// Where the first column of its row lies in a strided tensor.
fn row_of(place: Place, heads: u32, strides: vec4<u32>) -> u32 {
    return place.head / heads * strides.x + place.head % heads * strides.y
        + place.time * strides.z;
}

// Where it lies in a cache whose new rows begin at `write`.
fn cached(place: Place, write: u32) -> u32 {
    return (place.head * params.capacity + write + place.time) * params.head_dim + place.column;
}

fn place_query(i: u32) {
    let place = place_of(i);
    let row = row_of(place, params.query_heads, params.query_strides);
    let step = params.query_strides.w;
    var result = load_query(row + place.column * step);
    if (place.column < 2u * params.half) {
        let pair = pair_of(place.column, params.query_position + place.time);
        result = turned(result, load_query(row + pair.partner * step), pair);
    }
    store_out(i, result);
}

fn place_key(i: u32) {
    let place = place_of(i);
    let row = row_of(place, params.key_heads, params.key_strides);
    let step = params.key_strides.w;
    var result = load_key_row(row + place.column * step);
    if (place.column < 2u * params.half) {
        let pair = pair_of(place.column, params.key_position + place.time);
        result = turned(result, load_key_row(row + pair.partner * step), pair);
    }
    store_key(cached(place, params.key_write), result);
}

fn place_value(i: u32) {
    let place = place_of(i);
    let row = row_of(place, params.value_heads, params.value_strides);
    store_value(cached(place, params.value_write),
        load_value_row(row + place.column * params.value_strides.w));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i < params.query_count) {
        place_query(i);
    } else if (i < params.query_count + params.row_count) {
        place_key(i - params.query_count);
    } else if (i < params.query_count + 2u * params.row_count) {
        place_value(i - params.query_count - params.row_count);
    }
}
