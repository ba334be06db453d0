// out[n, p, i] = sum(weight(q, k) * x[n, q, i] for q and taps k with place(q, k) = p): the transpose
//   of image/resample
//
// x     (outer, made, inner)     contiguous
// out   (outer, length, inner)
// grid  one invocation per output; it asks the places of the result that may have taken it in
// fuses -> out
// turns places * (taps + 2)
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
    // of the result that a place is asked for, at most
    places: u32,
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
    let place = i32(line % params.length);
    let base = line / params.length * params.made;
    let last = i32(params.made) - 1;
    // At the ends places beyond are taken for the last one.
    var low = 0;
    var high = last;
    if (params.scale > 0.0) {
        let reach = 0.5 * f32(WIDTH) * select(1.0, max(params.scale, 1.0), ANTIALIAS) + 1.5;
        let first = (f32(place) - reach) / params.scale - 1.0;
        let end = (f32(place) + reach) / params.scale + 1.0;
        low = select(i32(clamp(first, 0.0, f32(last))), 0, place == 0);
        high = select(i32(clamp(end, 0.0, f32(last))), last, place == i32(params.length) - 1);
    }
    high = min(high, low + i32(params.places) - 1);
    var sum = 0.0;
    for (var q = low; q <= high; q++) {
        let taps = resample_taps(u32(q), params.length, params.scale);
        var share = 0.0;
        if (ANTIALIAS) {
            let k = place - taps.first;
            if (k >= 0 && k < taps.count) {
                share = resample_weight(taps, k);
            }
        } else {
            for (var k = 0; k < WIDTH; k++) {
                if (clamp(taps.first + k, 0, i32(params.length) - 1) == place) {
                    share += resample_weight(taps, k);
                }
            }
        }
        // what is not taken in may be infinite
        if (share != 0.0) {
            sum += share * load_x((base + u32(q)) * params.inner + i % params.inner);
        }
    }
    store_out(i, sum);
}
