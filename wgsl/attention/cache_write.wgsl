// cache[b, h, position + t, :] = rows[b, h, t, :]        in place
//
// rows   (batch, kv_heads, time, head_dim)       any strides
// cache  (batch, kv_heads, capacity, head_dim)   contiguous
// grid   one workgroup per WORKGROUP elements of rows, one lane each
// fuses  rows ->

const WORKGROUP = 64u;

struct Params {
    rows_strides: vec4<u32>,
    rows_offset: u32,
    cache_offset: u32,
    count: u32,
    heads: u32,
    time: u32,
    head_dim: u32,
    capacity: u32,
    position: u32,
}

@group(0) @binding(0) var<storage, read> rows: array<f32>;
@group(0) @binding(1) var<storage, read_write> cache: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_rows(i: u32) -> f32 { return rows[params.rows_offset + i]; }
fn store_cache(i: u32, value: f32) { cache[params.cache_offset + i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let column = i % params.head_dim;
    let row = i / params.head_dim;
    let time = row % params.time;
    let place = row / params.time;
    let steps = params.rows_strides;
    let at = place / params.heads * steps.x + place % params.heads * steps.y + time * steps.z;
    let line = place * params.capacity + params.position + time;
    store_cache(line * params.head_dim + column,
                load_rows(at + column * steps.w));
}
