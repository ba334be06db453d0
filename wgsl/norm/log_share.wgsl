// out[i] = (picked[i] - m) - log(s)   where (m, s) are the maximum and the sum of exp(x - m) of a line
//
// The second step; the first is a reduction.
//
// picked (count)   contiguous
// state  (count)   (m, s)
// out    (count)
// grid   one invocation per element
// fuses  picked -> out

const WORKGROUP = 64u;

struct Params {
    picked_offset: u32,
    state_offset: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> picked: array<f32>;
@group(0) @binding(1) var<storage, read> state: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_picked(i: u32) -> f32 { return picked[params.picked_offset + i]; }
fn load_state(i: u32) -> vec2<f32> { return state[params.state_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let pair = load_state(i);
    let is_finite = (bitcast<u32>(pair.x) & 0x7fffffffu) < 0x7f800000u;
    let share = (load_picked(i) - pair.x) - log(pair.y);
    // a line with an infinity that is its largest element has no logarithms
    store_out(i, select(bitcast<f32>(0x7fc00000u | (params.count & 1u)), share, is_finite));
}
