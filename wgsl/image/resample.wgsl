// out[n, q, i] = sum(weight(q, k) * x[n, place(q, k), i] for taps k): an axis with another length
//
// x     (outer, length, inner)   contiguous
// out   (outer, made, inner)
// grid  one invocation per output; parts/resample_taps says what the taps are
// fuses -> out
// turns 2 * taps
// uses  resample_taps

const WIDTH = 2;
const HALF = true;
const ANTIALIAS = false;

const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    outputs: u32,
    length: u32,
    made: u32,
    inner: u32,
    scale: f32,
    // of a place of the result, at most
    taps: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.outputs) {
        return;
    }
    let line = i / params.inner;
    let base = line / params.made * params.length;
    let taps = resample_taps(line % params.made, params.length, params.scale);
    var sum = 0.0;
    for (var k = 0; k < taps.count; k++) {
        let place = base + u32(clamp(taps.first + k, 0, i32(params.length) - 1));
        sum += resample_weight(taps, k) * load_x(place * params.inner + i % params.inner);
    }
    store_out(i, sum);
}
