// out[o, j, i] = x[o, j, i], then for s in order, where index[o, s, i] == j:  out = src[o, s, i]
//   (ADD: out += src)
//
// For few sources per line: every output looks at all of them, so no two lanes write one place and
// the order is fixed.
//
// x       (outer, limit, inner)     contiguous
// index   (outer, sources, inner)   contiguous, int64; a bad one is reported and writes nothing
// src     (outer, sources, inner)   contiguous
// out     (outer, limit, inner)
// grid    one workgroup per WORKGROUP elements of out, one lane each
// turns   sources
// uses    status

alias T = f32;
const WORKGROUP = 64u;
const ADD = false;

struct Params {
    x_offset: u32,
    index_offset: u32,
    src_offset: u32,
    op: u32,
    count: u32,
    limit: u32,
    sources: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> src: array<T>;
@group(0) @binding(3) var<storage, read_write> out: array<T>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let line = k / (params.limit * params.inner) * params.sources * params.inner + k % params.inner;
    let place = k / params.inner % params.limit;
    var value = load_x(k);
    for (var s = 0u; s < params.sources; s++) {
        let at = line + s * params.inner;
        let index = load_index(at);
        if (index.y != 0u || index.x >= params.limit) {
            report_index(params.op, index, params.limit);
        } else if (index.x == place) {
            if (ADD) {
                value = apply(value, load_src(at));
            } else {
                value = load_src(at);
            }
        }
    }
    store_out(k, value);
}
