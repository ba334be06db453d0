// out[o, p, i] = result(apply(entry(x[o, r, i]) for r in part p))
//   by default a sum; divided by `divisor` with MEAN
//
// For GPUs, where there are too few outputs for reduce/columns to fill it: several lanes share an
// output.
//
// x     (outer, reduced, inner)   contiguous
// out   (outer, parts, inner)     part p holds r from p * chunk to (p + 1) * chunk
// grid  one workgroup per (outer, part) and WIDTH neighbours in `inner`, which read neighbouring
//       words; lanes WIDTH apart share an output
// fuses x -> out
// turns chunk * WIDTH // WORKGROUP + 128
// uses  strip_fold

alias X = f32;
alias T = f32;
alias U = f32;
const WORKGROUP = 256u;
const WIDTH = 32u;
const MEAN = false;

struct Params {
    x_offset: u32,
    outputs: u32,
    reduced: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
    divisor: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> out: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn store_out(i: u32, value: U) { out[i] = value; }
fn entry(value: X) -> T { return value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn share(base: u32, first: u32, end: u32) -> T { return strip_share(base, first, end); }
fn result(value: T) -> U { return value; }
fn average(value: T, count: u32) -> T { return value / T(count); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    let tiles = (params.inner + WIDTH - 1u) / WIDTH;
    let line = group / tiles;
    if (line * params.inner >= params.outputs) {
        return;
    }
    let inner = group % tiles * WIDTH + lane % WIDTH;
    let part = line % params.parts;
    let base = line / params.parts * params.reduced * params.inner + min(inner, params.inner - 1u);
    let end = min((part + 1u) * params.chunk, params.reduced);
    let own = share(base, part * params.chunk + lane / WIDTH, end);
    var value = strip_fold(lane, own);
    if (lane < WIDTH && inner < params.inner) {
        if (MEAN) {
            value = average(value, params.divisor);
        }
        store_out(line * params.inner + inner, result(value));
    }
}
