// values[ends[row, d, b - 1] + r] = x[row, i],  order[...] = places[row, i]
//   where x[row, i] is number r of the entries of block b that have digit d
//
// Second step of a pass of a sort by digits, the lowest first: entries with equal digits keep their
// order. In a block, each lane counts its neighbouring entries by digit; the running sum of these
// counts, digit by digit, tells where each goes. Counts of two digits share a word.
//
// x       (rows, columns)      contiguous; `apply` turns a value into bits, high word first
// places  (rows, columns)      u32; read only with HAS_PLACES, else the columns
// ends    (rows, 16, blocks)   u32, the running sum of index/sort/radix_count
// values  (rows, columns)      written only with HAS_VALUES
// order   (rows, columns)      U: u32, or int64
// grid    one workgroup per row and block of WORKGROUP * PER entries
// turns   2 * PER + 32
// source  Merrill and Grimshaw 2011, "High performance and scalable radix sorting"
// uses    order

alias T = f32;
alias U = u32;
const WORKGROUP = 256u;
const PER = 16u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;
const HAS_PLACES = true;
const HAS_VALUES = true;

struct Params {
    x_offset: u32,
    places_offset: u32,
    ends_offset: u32,
    groups: u32,
    columns: u32,
    blocks: u32,
    shift: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read> ends: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<T>;
@group(0) @binding(4) var<storage, read_write> order: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> u32 { return places[params.places_offset + i]; }
fn load_ends(i: u32) -> u32 { return ends[params.ends_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }
fn result(place: u32) -> U { return place; }

// Of digits d and d + 8 in the low and the high half of word d * WORKGROUP + lane.
var<workgroup> tally: array<u32, 8u * WORKGROUP>;
var<workgroup> sums: array<u32, WORKGROUP>;
var<workgroup> firsts: array<u32, 16>;

fn tallied(digit: u32, lane: u32) -> u32 {
    return (tally[(digit & 7u) * WORKGROUP + lane] >> (16u * (digit >> 3u))) & 0xffffu;
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
    let start = (block * WORKGROUP + lane) * PER;
    for (var d = 0u; d < 8u; d++) {
        tally[d * WORKGROUP + lane] = 0u;
    }
    for (var k = 0u; k < PER; k++) {
        if (start + k < params.columns) {
            let digit = order_digit(apply(load_x(row * params.columns + start + k)), params.shift);
            tally[(digit & 7u) * WORKGROUP + lane] += 1u << (16u * (digit >> 3u));
        }
    }
    workgroupBarrier();
    // The running sum over all words: of eight by a lane, then over the lanes.
    var own = 0u;
    for (var k = 0u; k < 8u; k++) {
        own += tally[lane * 8u + k];
    }
    var running = own;
    for (var distance = 1u; distance < WORKGROUP; distance = distance * 2u) {
        sums[lane] = running;
        workgroupBarrier();
        if (lane >= distance) {
            running += sums[lane - distance];
        }
        workgroupBarrier();
    }
    sums[lane] = running;
    workgroupBarrier();
    // All of the low digits come before the high ones.
    running = running - own + (sums[WORKGROUP - 1u] << 16u);
    for (var k = 0u; k < 8u; k++) {
        let here = tally[lane * 8u + k];
        tally[lane * 8u + k] = running;
        running += here;
    }
    workgroupBarrier();
    // Where the entries of each digit go, less the number of those before them in the block.
    if (lane < 16u) {
        let before = (row * 16u + lane) * params.blocks + block;
        var first = 0u;
        if (before > 0u) {
            first = load_ends(before - 1u);
        }
        firsts[lane] = first - tallied(lane, 0u);
    }
    workgroupBarrier();
    for (var k = 0u; k < PER; k++) {
        if (start + k < params.columns) {
            let at = row * params.columns + start + k;
            let value = load_x(at);
            let digit = order_digit(apply(value), params.shift);
            let target_place = firsts[digit] + tallied(digit, lane);
            tally[(digit & 7u) * WORKGROUP + lane] += 1u << (16u * (digit >> 3u));
            var place = start + k;
            if (HAS_PLACES) {
                place = load_places(at);
            }
            if (HAS_VALUES) {
                values[target_place] = value;
            }
            order[target_place] = result(place);
        }
    }
}
