// out[o, m, l, i] = scale * sum_j exp(-+2 pi i j l / (radix * done)) * x[o, m + j * rest, l % done, i], j < radix
//   one pass of a Fourier transform along an axis of length rest * radix * done (Stockham): of subsequences
//   that have been transformed and are `done` long, `radix` become one
//
// x     (outer, radix * rest, done, inner)   contiguous
// out   (outer, rest, radix * done, inner)
// grid  one invocation per element
// turns radix
//
// source  C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7

alias T = vec2<f32>;
const WORKGROUP = 64u;
const INVERSE = false;

struct Params {
    count: u32, radix: u32, done: u32, rest: u32, inner: u32, x_offset: u32,
    step_high: f32, step_low: f32, scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (i >= params.count) {
        return;
    }
    let long = params.radix * params.done;
    let place = i / params.inner;
    let l = place % long;
    let block = place / long;
    let outer = block / params.rest;
    let first = (outer * params.radix * params.rest + block % params.rest) * params.done + l % params.done;
    let stride = params.rest * params.done;
    var sum = T();
    var turned = 0u;
    for (var j = 0u; j < params.radix; j++) {
        let root = unit_root(turned, long, vec2<f32>(params.step_high, params.step_low));
        let value = load_x((first + j * stride) * params.inner + i % params.inner);
        sum += complex_mul(select(root, vec2<f32>(root.x, -root.y), INVERSE), value);
        turned = select(turned + l, turned + l - long, turned + l >= long);
    }
    store_out(i, params.scale * sum);
}
