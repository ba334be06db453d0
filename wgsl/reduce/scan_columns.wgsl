// out[o, c, i] = result(apply(entry(x[o, 0, i]), ..., entry(x[o, c, i])))     by default a running sum
//
// For GPUs, along an axis whose neighbours lie apart.
//
// x      (outer, columns, inner)   contiguous
// totals (outer, parts, inner)     of the parts; unused when there is one part
// out    (outer, columns, inner)
// grid   one invocation per part of a line, which is `chunk` long: neighbours in `inner` read neighbouring
//        words. It adds up the totals before its part, then walks the part, eight elements at a time
// fuses  x -> out
// turns  chunk + parts

alias X = f32;
alias T = f32;
const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    totals_offset: u32,
    outputs: u32,
    columns: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> totals: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<X>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> X { return x[params.x_offset + i]; }
fn load_totals(i: u32) -> T { return totals[params.totals_offset + i]; }
fn store_out(i: u32, value: X) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn identity() -> T { return T(0); }
fn entry(value: X) -> T { return value; }
fn result(value: T) -> X { return value; }

// What comes before a part. Behind its end the last total is loaded again, so that no load waits for a branch.
fn sum_before(first: u32, part: u32) -> T {
    var sum = identity();
    for (var p = 0u; p < part; p += 4u) {
        let last = part - 1u;
        let a = load_totals(first + p * params.inner);
        let b = load_totals(first + min(p + 1u, last) * params.inner);
        let c = load_totals(first + min(p + 2u, last) * params.inner);
        let d = load_totals(first + min(p + 3u, last) * params.inner);
        sum = apply(sum, a);
        sum = apply(sum, select(identity(), b, p + 1u < part));
        sum = apply(sum, select(identity(), c, p + 2u < part));
        sum = apply(sum, select(identity(), d, p + 3u < part));
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let place = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (place >= params.outputs) {
        return;
    }
    let line = place / params.inner;
    let inner = place - line * params.inner;
    let outer = line / params.parts;
    let part = line - outer * params.parts;
    var sum = sum_before(outer * params.parts * params.inner + inner, part);
    let end = min((part + 1u) * params.chunk, params.columns);
    let step = params.inner;
    var column = part * params.chunk;
    var at = (outer * params.columns + column) * step + inner;
    for (; column + 8u <= end; column += 8u) {
        let a = entry(load_x(at));
        let b = entry(load_x(at + step));
        let c = entry(load_x(at + 2u * step));
        let d = entry(load_x(at + 3u * step));
        let e = entry(load_x(at + 4u * step));
        let f = entry(load_x(at + 5u * step));
        let g = entry(load_x(at + 6u * step));
        let h = entry(load_x(at + 7u * step));
        let to_a = apply(sum, a);
        let to_b = apply(to_a, b);
        let to_c = apply(to_b, c);
        let to_d = apply(to_c, d);
        let to_e = apply(to_d, e);
        let to_f = apply(to_e, f);
        let to_g = apply(to_f, g);
        sum = apply(to_g, h);
        store_out(at, result(to_a));
        store_out(at + step, result(to_b));
        store_out(at + 2u * step, result(to_c));
        store_out(at + 3u * step, result(to_d));
        store_out(at + 4u * step, result(to_e));
        store_out(at + 5u * step, result(to_f));
        store_out(at + 6u * step, result(to_g));
        store_out(at + 7u * step, result(sum));
        at += 8u * step;
    }
    for (; column < end; column++) {
        sum = apply(sum, entry(load_x(at)));
        store_out(at, result(sum));
        at += step;
    }
}
