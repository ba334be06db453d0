// words[o, index[o, s, i], i] = max(words[o, index[o, s, i], i], word(src[o, s, i]))
//
// Maxima and minima do not depend on the order of what they are of, so sources need no sort. Words
// stand for values (`word`): the larger one wins, for a minimum that of the smaller value.
//
// index  (outer, sources, inner)   contiguous, int64; a bad one is reported and goes nowhere
// src    (outer, sources, inner)   contiguous
// words  (outer, limit, inner)     u32, those of what is there before
// grid   one workgroup per WORKGROUP sources, one lane each
// uses   scatter_place

alias T = f32;
const WORKGROUP = 64u;

struct Params {
    index_offset: u32,
    src_offset: u32,
    op: u32,
    count: u32,
    limit: u32,
    sources: u32,
    inner: u32,
}

@group(0) @binding(0) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> src: array<T>;
@group(0) @binding(2) var<storage, read_write> words: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }
fn load_src(i: u32) -> T { return src[params.src_offset + i]; }
fn word(value: T) -> u32 { return largest_word(value); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let own = word(load_src(k));
    let place = scatter_place(k, load_index(k));
    // Of many sources of one place few are larger than what is there: the others do not wait.
    if (place != 0xffffffffu && own > atomicLoad(&words[place])) {
        atomicMax(&words[place], own);
    }
}
