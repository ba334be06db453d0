// out[r, c] = x[r, c], then for s in order, where keys[order[s]] == r:  out = src[order[s], c]
//   (ADD: out += src)
//
// The second half of a scatter: `order` sorts the keys, so the sources of row r are neighbours,
// found by bisection. The sum runs in the order of the sources: the same bits on every run. Of very
// many sources a dispatch takes the `window` from `begin` on, and x is what the one before made.
//
// x      (rows, width)      contiguous; read only with HAS_BASE, else 0
// keys   (sources)          u32
// order  (sources)          u32, stable
// src    (sources, width)   contiguous
// out    (rows, width)
// grid   one workgroup per WORKGROUP elements of out, one lane each
// turns  128 + window // 8

alias T = f32;
const WORKGROUP = 64u;
const ADD = false;
const HAS_BASE = true;

struct Params {
    x_offset: u32,
    keys_offset: u32,
    order_offset: u32,
    src_offset: u32,
    count: u32,
    sources: u32,
    begin: u32,
    window: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read> order: array<u32>;
@group(0) @binding(3) var<storage, read> src: array<T>;
@group(0) @binding(4) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_keys(i: u32) -> u32 { return keys[params.keys_offset + i]; }
fn load_order(i: u32) -> u32 { return order[params.order_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }

// What a row has collected, and whether there may be more for it.
struct Walk {
    value: T,
    goes_on: bool,
}

fn walked(walk: Walk, s: u32, end: u32, row: u32, column: u32) -> Walk {
    if (!walk.goes_on || s >= end) {
        return Walk(walk.value, false);
    }
    let source = load_order(s);
    if (load_keys(source) != row) {
        return Walk(walk.value, false);
    }
    let value = load_src(source * params.width + column);
    if (ADD) {
        return Walk(apply(walk.value, value), true);
    }
    return Walk(value, true);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let row = k / params.width;
    let column = k % params.width;
    var low = 0u;
    var high = params.sources;
    while (low < high) {
        let middle = (low + high) / 2u;
        if (load_keys(load_order(middle)) < row) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    var value = T();
    if (HAS_BASE) {
        value = load_x(k);
    }
    var walk = Walk(value, true);
    let end = min(params.sources, params.begin + params.window);
    for (var s = max(low, params.begin); s < end && walk.goes_on; s += 8u) {
        walk = walked(walk, s, end, row, column);
        walk = walked(walk, s + 1u, end, row, column);
        walk = walked(walk, s + 2u, end, row, column);
        walk = walked(walk, s + 3u, end, row, column);
        walk = walked(walk, s + 4u, end, row, column);
        walk = walked(walk, s + 5u, end, row, column);
        walk = walked(walk, s + 6u, end, row, column);
        walk = walked(walk, s + 7u, end, row, column);
    }
    store_out(k, walk.value);
}
