// values[row, b, :], indices[row, b, :] = the first `keep` entries of block b of a row in their
//   order, and what their places stand for
//
// A step of a top-k: the next one chooses from what this one kept. Each lane finds the first of its
// PER entries. Of these, the one with rank `keep` bounds the result: what stands behind it is out,
// and only the lanes up to it have entries in front of it, at most keep * PER. They are collected,
// and each counts how many come before it. Ties go by place, and no two places are equal, so the
// result does not depend on the order in which they are collected.
//
// x        (rows, entries)   contiguous; `apply` turns a value into bits, high word first
// places   (rows, entries)   int64, what an entry stands for; read only with HAS_PLACES, else its
//          column
// values   (rows, pitch)     block b from b * keep; only the last block may have fewer than keep
// indices  (rows, pitch)     int64
// grid     one workgroup per row and block of WORKGROUP * PER entries; 0 < keep <= WORKGROUP and
//          keep * PER <= CANDIDATES
// turns    5 * CANDIDATES + 512
// uses     order

alias T = f32;
const WORKGROUP = 256u;
const PER = 4u;
const CANDIDATES = 1024u;
const HAS_PLACES = false;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    x_offset: u32,
    places_offset: u32,
    groups: u32,
    entries: u32,
    blocks: u32,
    keep: u32,
    pitch: u32,
}

const BLOCK = WORKGROUP * PER;

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> places: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> values: array<T>;
@group(0) @binding(3) var<storage, read_write> indices: array<vec2<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> vec2<u32> { return places[params.places_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

var<workgroup> first_keys: array<vec2<u32>, WORKGROUP>;
var<workgroup> first_places: array<u32, WORKGROUP>;
var<workgroup> bound_key: vec2<u32>;
var<workgroup> bound_place: u32;
var<workgroup> keys: array<vec2<u32>, CANDIDATES>;
var<workgroup> found_places: array<u32, CANDIDATES>;
var<workgroup> collected: atomic<u32>;

fn find(base: u32, entry: u32) -> Found {
    return Found(order_key(apply(load_x(base + entry))), entry);
}

fn put(base: u32, entry: u32, at: u32) {
    var index = vec2<u32>(entry, 0u);
    if (HAS_PLACES) {
        index = load_places(base + entry);
    }
    values[at] = load_x(base + entry);
    indices[at] = index;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let block = group % params.blocks;
    let base = row * params.entries;
    let start = block * BLOCK;
    let end = min(start + BLOCK, params.entries);
    let kept = min(params.keep, end - start);
    let out_base = row * params.pitch + block * params.keep;

    var first = found_nothing();
    // four loads are under way at once; past the end a lane's own entry comes again
    for (var i = start + lane; i < end; i += 4u * WORKGROUP) {
        let j = i + vec3<u32>(1u, 2u, 3u) * WORKGROUP;
        let k = select(vec3<u32>(i), j, j < vec3<u32>(end));
        let pair = found_first(find(base, i), find(base, k.x));
        first = found_first(first, found_first(pair, found_first(find(base, k.y), find(base, k.z))));
    }
    first_keys[lane] = first.key;
    first_places[lane] = first.place;
    if (lane == 0u) {
        atomicStore(&collected, 0u);
    }
    workgroupBarrier();
    var rank = 0u;
    for (var k = 0u; k < WORKGROUP; k++) {
        rank += u32(found_before(Found(first_keys[k], first_places[k]), first));
    }
    if (PER == 1u) {
        if (rank < kept) {
            put(base, first.place, out_base + rank);
        }
        return;
    }
    if (rank == kept - 1u) {
        bound_key = first.key;
        bound_place = first.place;
    }
    workgroupBarrier();
    let bound = Found(bound_key, bound_place);
    if (rank < kept) {
        for (var i = start + lane; i < end; i += WORKGROUP) {
            let found = find(base, i);
            if (!found_before(bound, found)) {
                let slot = atomicAdd(&collected, 1u);
                keys[slot] = found.key;
                found_places[slot] = found.place;
            }
        }
    }
    workgroupBarrier();
    let candidates = atomicLoad(&collected);
    for (var c = lane; c < candidates; c += WORKGROUP) {
        let found = Found(keys[c], found_places[c]);
        rank = 0u;
        for (var k = 0u; k < candidates; k++) {
            rank += u32(found_before(Found(keys[k], found_places[k]), found));
        }
        if (rank < kept) {
            put(base, found.place, out_base + rank);
        }
    }
}
