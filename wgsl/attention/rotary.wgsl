// Rotary position embedding: pairs (x1, x2) of a head at time t turn by the angles of position + t.
//
//   out1 = x1 * cos - x2 * sin,  out2 = x2 * cos + x1 * sin       (sin negated with INVERSE)
//
// x       (batch, heads, time, head_dim)   any strides
// cosines (positions, half)
// sines   (positions, half)
// out     (batch, heads, time, head_dim)
// grid    one workgroup per WORKGROUP elements of out, one lane each
// fuses   x -> out
// source  Su et al. 2021, "RoFormer", equation 34
// uses    attention/turn

const WORKGROUP = 64u;
const INTERLEAVED = false;
const INVERSE = false;

struct Params {
    x_strides: vec4<u32>,
    x_offset: u32,
    cosines_offset: u32,
    sines_offset: u32,
    count: u32,
    heads: u32,
    time: u32,
    head_dim: u32,
    half: u32,
    position: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> cosines: array<f32>;
@group(0) @binding(2) var<storage, read> sines: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_cosines(i: u32) -> f32 { return cosines[params.cosines_offset + i]; }
fn load_sines(i: u32) -> f32 { return sines[params.sines_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

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
    let base = place / params.heads * params.x_strides.x
        + place % params.heads * params.x_strides.y + time * params.x_strides.z;
    let value = load_x(base + column * params.x_strides.w);
    if (column >= 2u * params.half) {
        store_out(i, value);
        return;
    }
    var pair = pair_of(column, params.position + time);
    if (INVERSE) {
        pair.sign = -pair.sign;
    }
    store_out(i, turned(value, load_x(base + pair.partner * params.x_strides.w), pair));
}
