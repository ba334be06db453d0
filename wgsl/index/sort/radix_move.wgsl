// values[ends[row, d, b - 1] + r] = x[row, i],  order[...] = places[row, i]
//   where x[row, i] is number r of the entries of block b that have digit d
//
// Second step of a pass of a sort by digits, the lowest first: entries with equal digits keep their
// order. A workgroup sorts the digits of its block, four bits at a time; then values and places change
// places in its memory, so that neighbouring lanes load and store side by side. For each four bits a
// lane counts its entries; the running sum of these counts, number by number, tells where each goes.
// Counts of two numbers share a word.
//
// x       (rows, columns)       contiguous; `apply` turns a value into bits, high word first
// places  (rows, columns)       u32; read only with HAS_PLACES, else the columns
// ends    (rows, 256, blocks)   u32, the running sum of index/sort/radix_count
// values  (rows, columns)       written only with HAS_VALUES
// order   (rows, columns)       U: u32, or int64
// grid    one workgroup per row and block of 16 * WORKGROUP entries
// turns   64
// source  Merrill and Grimshaw 2011, "High performance and scalable radix sorting"
// uses    order

alias T = f32;
alias U = u32;
const WORKGROUP = 128u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;
const HAS_PLACES = true;
const HAS_VALUES = true;
// Whether an element is a word.
const NARROW = true;

const BLOCK = 16u * WORKGROUP;

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
fn word(value: T) -> u32 { return bitcast<u32>(value); }
fn of_word(bits: u32) -> T { return bitcast<T>(bits); }

// At first four digits of entries a word; the entries in order, by their number in the block, with
// one slot in 17 left out, so that lanes meet different banks of the memory; how many entries of a
// lane have numbers n and n + 8, the low and the high half of word n * WORKGROUP + lane, with one slot
// in 9 left out; sums of lanes. Then pairs of entries in order, one slot in 9 left out; what changes
// places; where the entries of each digit go, less their place in the block.
var<workgroup> memory: array<u32, 32u * WORKGROUP>;
const ITEMS = BLOCK / 4u;
const TALLY = ITEMS + 17u * WORKGROUP;
const FIRSTS = 30u * WORKGROUP;
const MOVED = 9u * WORKGROUP;

fn item_slot(i: u32) -> u32 { return ITEMS + i + i / 16u; }

fn tally_slot(i: u32) -> u32 { return TALLY + i + i / 8u; }

fn digit_of(s: u32) -> u32 { return (memory[s / 4u] >> (8u * (s & 3u))) & 255u; }

fn entry_of(i: u32) -> u32 { return (memory[i / 2u + i / 16u] >> (16u * (i & 1u))) & 0xfffu; }

fn digit_at(row: u32, column: u32) -> u32 {
    let value = load_x(row * params.columns + min(column, params.columns - 1u));
    // behind all entries, as the last of their digit
    return select(255u, order_digit(apply(value), params.shift), column < params.columns);
}

fn four_digits(row: u32, first: u32) -> u32 {
    let a = digit_at(row, first);
    let b = digit_at(row, first + 1u);
    let c = digit_at(row, first + 2u);
    let d = digit_at(row, first + 3u);
    return a | (b << 8u) | (c << 16u) | (d << 24u);
}

fn clear(lane: u32) {
    for (var n = 0u; n < 8u; n++) {
        memory[tally_slot(n * WORKGROUP + lane)] = 0u;
    }
}

// How many entries of a lane with n there were before; after `scan` of all.
fn counted(n: u32, lane: u32) -> u32 {
    let half = (n & 8u) << 1u;
    let at = tally_slot((n & 7u) * WORKGROUP + lane);
    let here = memory[at];
    memory[at] = here + (1u << half);
    return (here >> half) & 0xffffu;
}

fn count_four(digits: u32, lane: u32) {
    counted(digits & 15u, lane);
    counted((digits >> 8u) & 15u, lane);
    counted((digits >> 16u) & 15u, lane);
    counted((digits >> 24u) & 15u, lane);
}

// The running sum over all words: of eight by a lane, then over the lanes.
fn scan(lane: u32) {
    workgroupBarrier();
    let first = TALLY + 9u * lane;
    var own = 0u;
    for (var k = 0u; k < 8u; k++) {
        own += memory[first + k];
    }
    var running = own;
    for (var distance = 1u; distance < WORKGROUP; distance = distance * 2u) {
        memory[FIRSTS + lane] = running;
        workgroupBarrier();
        if (lane >= distance) {
            running += memory[FIRSTS + lane - distance];
        }
        workgroupBarrier();
    }
    memory[FIRSTS + lane] = running;
    workgroupBarrier();
    // All of the low numbers come before the high ones.
    running = running - own + (memory[FIRSTS + WORKGROUP - 1u] << 16u);
    for (var k = 0u; k < 8u; k++) {
        let here = memory[first + k];
        memory[first + k] = running;
        running += here;
    }
    workgroupBarrier();
}

// An entry by the low four bits of its digit; it takes the high ones along.
fn put_low(digit: u32, entry: u32, lane: u32) {
    memory[item_slot(counted(digit & 15u, lane))] = entry | ((digit >> 4u) << 12u);
}

fn put_low_four(digits: u32, first: u32, lane: u32) {
    put_low(digits & 255u, first, lane);
    put_low((digits >> 8u) & 255u, first + 1u, lane);
    put_low((digits >> 16u) & 255u, first + 2u, lane);
    put_low(digits >> 24u, first + 3u, lane);
}

// Two entries in a word.
fn pair(at: u32) -> u32 { return memory[at] | (memory[at + 1u] << 16u); }

// The same, counted by the four bits that they took along.
fn counted_pair(at: u32, lane: u32) -> u32 {
    let both = pair(at);
    counted((both >> 12u) & 15u, lane);
    counted(both >> 28u, lane);
    return both;
}

fn put_pair(both: u32, lane: u32) {
    memory[item_slot(counted((both >> 12u) & 15u, lane))] = both & 0xfffu;
    memory[item_slot(counted(both >> 28u, lane))] = (both >> 16u) & 0xfffu;
}

fn mark_first(i: u32) {
    let digit = digit_of(memory[item_slot(i)]);
    if (i == 0u || digit_of(memory[item_slot(max(i, 1u) - 1u)]) != digit) {
        memory[FIRSTS + digit] = i;
    }
}

fn end_before(row: u32, digit: u32, block: u32) -> u32 {
    let before = (row * 256u + digit) * params.blocks + block;
    return select(0u, load_ends(max(before, 1u) - 1u), before > 0u);
}

fn hold_values(base: u32, i: u32, last: u32) {
    let a = word(load_x(base + min(i, last)));
    let b = word(load_x(base + min(i + WORKGROUP, last)));
    let c = word(load_x(base + min(i + 2u * WORKGROUP, last)));
    let d = word(load_x(base + min(i + 3u * WORKGROUP, last)));
    hold(i, vec4<u32>(a, b, c, d));
}

fn four_places(base: u32, i: u32, last: u32) -> vec4<u32> {
    let a = load_places(base + min(i, last));
    let b = load_places(base + min(i + WORKGROUP, last));
    let c = load_places(base + min(i + 2u * WORKGROUP, last));
    let d = load_places(base + min(i + 3u * WORKGROUP, last));
    return vec4<u32>(a, b, c, d);
}

fn hold(i: u32, words: vec4<u32>) {
    memory[MOVED + i] = words.x;
    memory[MOVED + i + WORKGROUP] = words.y;
    memory[MOVED + i + 2u * WORKGROUP] = words.z;
    memory[MOVED + i + 3u * WORKGROUP] = words.w;
}

// The value of the entry that is number i.
fn value_of(base: u32, i: u32, last: u32) -> T {
    if (NARROW) { return of_word(memory[MOVED + entry_of(i)]); }
    return load_x(base + min(entry_of(i), last));
}

fn goes_to(value: T, i: u32) -> u32 {
    return memory[FIRSTS + order_digit(apply(value), params.shift)] + i;
}

// Moves four values, and returns where they went. Stores stand in one block where all are there, which none
// holds up that way.
fn move_four(base: u32, i: u32, entries: u32) -> vec4<u32> {
    let a = value_of(base, i, entries - 1u);
    let b = value_of(base, i + WORKGROUP, entries - 1u);
    let c = value_of(base, i + 2u * WORKGROUP, entries - 1u);
    let d = value_of(base, i + 3u * WORKGROUP, entries - 1u);
    let to = vec4<u32>(goes_to(a, i), goes_to(b, i + WORKGROUP), goes_to(c, i + 2u * WORKGROUP),
        goes_to(d, i + 3u * WORKGROUP));
    if (HAS_VALUES) {
        if (i + 3u * WORKGROUP < entries) {
            values[to.x] = a;
            values[to.y] = b;
            values[to.z] = c;
            values[to.w] = d;
        } else {
            if (i < entries) { values[to.x] = a; }
            if (i + WORKGROUP < entries) { values[to.y] = b; }
            if (i + 2u * WORKGROUP < entries) { values[to.z] = c; }
        }
    }
    return to;
}

fn place_of(start: u32, i: u32) -> U {
    let entry = entry_of(i);
    if (HAS_PLACES) { return result(memory[MOVED + entry]); }
    return result(start + entry);
}

fn move_four_places(start: u32, i: u32, to: vec4<u32>, entries: u32) {
    let a = place_of(start, i);
    let b = place_of(start, i + WORKGROUP);
    let c = place_of(start, i + 2u * WORKGROUP);
    let d = place_of(start, i + 3u * WORKGROUP);
    if (i + 3u * WORKGROUP < entries) {
        order[to.x] = a;
        order[to.y] = b;
        order[to.z] = c;
        order[to.w] = d;
    } else {
        if (i < entries) { order[to.x] = a; }
        if (i + WORKGROUP < entries) { order[to.y] = b; }
        if (i + 2u * WORKGROUP < entries) { order[to.z] = c; }
    }
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
    let start = block * BLOCK;
    let base = row * params.columns + start;
    let entries = min(BLOCK, params.columns - start);
    let word_0 = four_digits(row, start + 4u * lane);
    let word_1 = four_digits(row, start + 4u * (lane + WORKGROUP));
    let word_2 = four_digits(row, start + 4u * (lane + 2u * WORKGROUP));
    let word_3 = four_digits(row, start + 4u * (lane + 3u * WORKGROUP));
    let end_low = end_before(row, lane, block);
    let end_high = end_before(row, lane + WORKGROUP, block);
    clear(lane);
    memory[lane] = word_0;
    memory[lane + WORKGROUP] = word_1;
    memory[lane + 2u * WORKGROUP] = word_2;
    memory[lane + 3u * WORKGROUP] = word_3;
    workgroupBarrier();
    let digits_0 = memory[4u * lane];
    let digits_1 = memory[4u * lane + 1u];
    let digits_2 = memory[4u * lane + 2u];
    let digits_3 = memory[4u * lane + 3u];
    count_four(digits_0, lane);
    count_four(digits_1, lane);
    count_four(digits_2, lane);
    count_four(digits_3, lane);
    scan(lane);
    let first = 16u * lane;
    put_low_four(digits_0, first, lane);
    put_low_four(digits_1, first + 4u, lane);
    put_low_four(digits_2, first + 8u, lane);
    put_low_four(digits_3, first + 12u, lane);
    clear(lane);
    workgroupBarrier();
    let at = item_slot(first);
    var pair_0 = counted_pair(at, lane);
    var pair_1 = counted_pair(at + 2u, lane);
    var pair_2 = counted_pair(at + 4u, lane);
    var pair_3 = counted_pair(at + 6u, lane);
    var pair_4 = counted_pair(at + 8u, lane);
    var pair_5 = counted_pair(at + 10u, lane);
    var pair_6 = counted_pair(at + 12u, lane);
    var pair_7 = counted_pair(at + 14u, lane);
    scan(lane);
    put_pair(pair_0, lane);
    put_pair(pair_1, lane);
    put_pair(pair_2, lane);
    put_pair(pair_3, lane);
    put_pair(pair_4, lane);
    put_pair(pair_5, lane);
    put_pair(pair_6, lane);
    put_pair(pair_7, lane);
    workgroupBarrier();
    for (var i = lane; i < BLOCK; i += 4u * WORKGROUP) {
        mark_first(i);
        mark_first(i + WORKGROUP);
        mark_first(i + 2u * WORKGROUP);
        mark_first(i + 3u * WORKGROUP);
    }
    pair_0 = pair(at);
    pair_1 = pair(at + 2u);
    pair_2 = pair(at + 4u);
    pair_3 = pair(at + 6u);
    pair_4 = pair(at + 8u);
    pair_5 = pair(at + 10u);
    pair_6 = pair(at + 12u);
    pair_7 = pair(at + 14u);
    workgroupBarrier();
    memory[FIRSTS + lane] = end_low - memory[FIRSTS + lane];
    memory[FIRSTS + WORKGROUP + lane] = end_high - memory[FIRSTS + WORKGROUP + lane];
    memory[9u * lane] = pair_0;
    memory[9u * lane + 1u] = pair_1;
    memory[9u * lane + 2u] = pair_2;
    memory[9u * lane + 3u] = pair_3;
    memory[9u * lane + 4u] = pair_4;
    memory[9u * lane + 5u] = pair_5;
    memory[9u * lane + 6u] = pair_6;
    memory[9u * lane + 7u] = pair_7;
    let last = entries - 1u;
    if (NARROW) {
        hold_values(base, lane, last);
        hold_values(base, lane + 4u * WORKGROUP, last);
        hold_values(base, lane + 8u * WORKGROUP, last);
        hold_values(base, lane + 12u * WORKGROUP, last);
    }
    var places_0 = vec4<u32>();
    var places_1 = vec4<u32>();
    var places_2 = vec4<u32>();
    var places_3 = vec4<u32>();
    if (HAS_PLACES) {
        places_0 = four_places(base, lane, last);
        places_1 = four_places(base, lane + 4u * WORKGROUP, last);
        places_2 = four_places(base, lane + 8u * WORKGROUP, last);
        places_3 = four_places(base, lane + 12u * WORKGROUP, last);
    }
    workgroupBarrier();
    let to_0 = move_four(base, lane, entries);
    let to_1 = move_four(base, lane + 4u * WORKGROUP, entries);
    let to_2 = move_four(base, lane + 8u * WORKGROUP, entries);
    let to_3 = move_four(base, lane + 12u * WORKGROUP, entries);
    if (HAS_PLACES) {
        workgroupBarrier();  // all have been taken
        hold(lane, places_0);
        hold(lane + 4u * WORKGROUP, places_1);
        hold(lane + 8u * WORKGROUP, places_2);
        hold(lane + 12u * WORKGROUP, places_3);
        workgroupBarrier();
    }
    move_four_places(start, lane, to_0, entries);
    move_four_places(start, lane + 4u * WORKGROUP, to_1, entries);
    move_four_places(start, lane + 8u * WORKGROUP, to_2, entries);
    move_four_places(start, lane + 12u * WORKGROUP, to_3, entries);
}
