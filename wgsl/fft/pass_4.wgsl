// As fft/pass with a radix of 4, whose sums need no products: an invocation makes four elements.
//
// x     (outer, 4 * rest, done, inner)   contiguous
// out   (outer, rest, 4 * done, inner)
// grid  one invocation per four elements
// turns 3

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
    let root = unit_root(k, 4u * params.done, vec2<f32>(params.step_high, params.step_low));
    return select(root, vec2<f32>(root.x, -root.y), INVERSE);
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
    let first = ((outer * 4u * params.rest + block % params.rest) * params.done + l) * params.inner + inner;
    let stride = params.rest * params.done * params.inner;
    let a = load_x(first);
    let b = complex_mul(factor(l), load_x(first + stride));
    let c = complex_mul(factor(2u * l), load_x(first + 2u * stride));
    let d = complex_mul(factor(3u * l), load_x(first + 3u * stride));
    let even = a + c;
    let odd = a - c;
    let sum = b + d;
    let apart = select(vec2<f32>(b.y - d.y, d.x - b.x), vec2<f32>(d.y - b.y, b.x - d.x), INVERSE);
    let target_place = (block * 4u * params.done + l) * params.inner + inner;
    let step = params.done * params.inner;
    store_out(target_place, params.scale * (even + sum));
    store_out(target_place + step, params.scale * (odd + apart));
    store_out(target_place + 2u * step, params.scale * (even - sum));
    store_out(target_place + 3u * step, params.scale * (odd - apart));
}
