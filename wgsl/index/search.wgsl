// out[k] = where input[k] would be inserted into a sorted row of 32-bit values, which workgroup memory holds
//
// Before equal values, or with RIGHT behind them. The keys of the row lie there as the nodes of a tree, whose
// upper levels lanes read at places side by side: of sorted ones most would lie in one bank. Eight elements go
// down at once, and what is left of 2^LEVELS is the place. A row that is not sorted, or has NaN in it, is
// bisected where it is.
//
// rows   (columns,)  below 2^LEVELS; `apply` turns a value into bits and a 0
// input  (count,)    contiguous
// out    (count,)    int64, or int32: `placed` makes either
// grid   one workgroup per WORKGROUP * PER elements of out
// turns  PER * (LEVELS + 33) + 2 * 2 ** LEVELS // WORKGROUP
// uses   bisection, order

alias T = f32;
alias PLACE = vec2<u32>;
const WORKGROUP = 256u;
const PER = 32u;
const LEVELS = 11u;
const RIGHT = false;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    rows_offset: u32,
    input_offset: u32,
    count: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> rows: array<T>;
@group(0) @binding(1) var<storage, read> input: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<PLACE>;
@group(1) @binding(0) var<uniform> params: Params;

const NODES = 1u << LEVELS;
var<workgroup> tree: array<u32, NODES>;
var<workgroup> unsorted: atomic<u32>;

fn load_rows(i: u32) -> T { return rows[params.rows_offset + i]; }
fn load_input(i: u32) -> T { return input[params.input_offset + i]; }
fn placed(place: u32) -> PLACE { return vec2<u32>(place, 0u); }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

// A NaN is passed by everything.
fn row_key(place: u32) -> u32 {
    let key = order_key(apply(load_rows(place))).x;
    return select(key, 0u, FLOAT && key == 0xffffffffu);
}

// Past the end it reads the last element again.
fn key_at(i: u32) -> u32 { return order_key(apply(load_input(min(i, params.count - 1u)))).x; }

fn four_keys(i: u32) -> vec4<u32> {
    return vec4<u32>(
        key_at(i), key_at(i + WORKGROUP), key_at(i + 2u * WORKGROUP), key_at(i + 3u * WORKGROUP));
}

fn below(node: vec4<u32>, key: vec4<u32>) -> vec4<u32> {
    let found = vec4<u32>(tree[node.x], tree[node.y], tree[node.z], tree[node.w]);
    if (RIGHT) { return 2u * node + select(vec4<u32>(0u), vec4<u32>(1u), found <= key); }
    return 2u * node + select(vec4<u32>(0u), vec4<u32>(1u), found < key);
}

fn store_place(i: u32, place: u32) {
    if (i < params.count) { out[i] = placed(min(place, params.columns)); }
}

fn store_four(i: u32, places: vec4<u32>) {
    store_place(i, places.x);
    store_place(i + WORKGROUP, places.y);
    store_place(i + 2u * WORKGROUP, places.z);
    store_place(i + 3u * WORKGROUP, places.w);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    if (lane == 0u) { atomicStore(&unsorted, 0u); }
    workgroupBarrier();
    for (var node = lane; node < NODES; node += WORKGROUP) {
        let level = firstLeadingBit(max(node, 1u));
        let place = ((2u * (node - (1u << level)) + 1u) << (LEVELS - 1u - level)) - 1u;
        var key = 0xffffffffu;
        if (node > 0u && place < params.columns) {
            key = row_key(place);
            if (place + 1u < params.columns && row_key(place + 1u) < key) { atomicStore(&unsorted, 1u); }
        }
        tree[node] = key;
    }
    workgroupBarrier();
    let start = (id.y * count.x + id.x) * WORKGROUP * PER + lane;
    if (atomicLoad(&unsorted) != 0u) {
        for (var k = 0u; k < PER; k++) {
            let i = min(start + k * WORKGROUP, params.count - 1u);
            store_place(i, bisected(vec2<u32>(key_at(i), 0u), 0u, params.columns));
        }
        return;
    }
    for (var k = 0u; k < PER; k += 8u) {
        let i = start + k * WORKGROUP;
        let key = four_keys(i);
        let more = four_keys(i + 4u * WORKGROUP);
        var node = vec4<u32>(1u);
        var other = vec4<u32>(1u);
        for (var level = 0u; level < LEVELS; level++) {
            node = below(node, key);
            other = below(other, more);
        }
        store_four(i, node - vec4<u32>(NODES));
        store_four(i + 4u * WORKGROUP, other - vec4<u32>(NODES));
    }
}
