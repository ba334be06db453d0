// As fft/pass with a radix of 16: two passes of fours, between which nothing leaves the registers.
//
// x     (outer, 16 * rest, done, inner)   contiguous
// out   (outer, rest, 16 * done, inner)
// grid  one invocation per 16 elements
// turns 6
// uses  four, unit_root

alias T = vec2<f32>;
const WORKGROUP = 64u;
const INVERSE = false;

struct Params {
    count: u32, done: u32, rest: u32, inner: u32, x_offset: u32,
    step_high: f32, step_low: f32, scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

fn factor(k: u32) -> vec2<f32> {
    return root_turned(unit_root(k, 16u * params.done, vec2<f32>(params.step_high, params.step_low)));
}

// The roots of l, twice l and three times l, `times` each.
fn factors(l: u32, times: u32) -> Four {
    let k = l * times;
    return Four(vec2<f32>(1.0, 0.0), factor(k), factor(2u * k), factor(3u * k));
}

fn loaded(first: u32, step: u32) -> Four {
    return Four(load_x(first), load_x(first + step), load_x(first + 2u * step), load_x(first + 3u * step));
}

fn store_four(first: u32, step: u32, four: Four) {
    store_out(first, params.scale * four.a);
    store_out(first + step, params.scale * four.b);
    store_out(first + 2u * step, params.scale * four.c);
    store_out(first + 3u * step, params.scale * four.d);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let inner = i % params.inner;
    let place = i / params.inner;
    let l = place % params.done;
    let block = place / params.done;
    let outer = block / params.rest;
    let first = ((outer * 16u * params.rest + block % params.rest) * params.done + l) * params.inner + inner;
    let stride = params.rest * params.done * params.inner;
    let a = loaded(first, 4u * stride);
    let b = loaded(first + stride, 4u * stride);
    let c = loaded(first + 2u * stride, 4u * stride);
    let d = loaded(first + 3u * stride, 4u * stride);
    let near = factors(l, 4u);
    let a_made = four_transformed(a, near);
    let b_made = four_transformed(b, near);
    let c_made = four_transformed(c, near);
    let d_made = four_transformed(d, near);
    let far = factors(l, 1u);
    let step = params.done * params.inner;
    let target_place = (block * 16u * params.done + l) * params.inner + inner;
    store_four(target_place, 4u * step,
        four_transformed(Four(a_made.a, b_made.a, c_made.a, d_made.a), far));
    store_four(target_place + step, 4u * step,
        four_transformed(Four(a_made.b, b_made.b, c_made.b, d_made.b),
            four_further(far, SIXTEENTH, TWO_SIXTEENTHS, THREE_SIXTEENTHS)));
    store_four(target_place + 2u * step, 4u * step,
        four_transformed(Four(a_made.c, b_made.c, c_made.c, d_made.c),
            four_further(far, TWO_SIXTEENTHS, FOUR_SIXTEENTHS, SIX_SIXTEENTHS)));
    store_four(target_place + 3u * step, 4u * step,
        four_transformed(Four(a_made.d, b_made.d, c_made.d, d_made.d),
            four_further(far, THREE_SIXTEENTHS, SIX_SIXTEENTHS, NINE_SIXTEENTHS)));
}
