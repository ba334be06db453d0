// values[row, :], order[row, :] = the elements of a row in their order, and where they were
//
// One workgroup sorts a row by its digits of four bits, the lowest first: entries with equal digits keep their
// order. Each lane has sixteen entries in its registers, counts them by their digits, and from the running sum
// of these counts, digit by digit, knows where each goes; in workgroup memory they change places. Bits that
// are sorted are needed no more: from bit 12 on an entry's place stands there, and both are one word.
//
// x       (rows, columns)   contiguous, 32-bit; columns <= 16 * WORKGROUP; `apply` turns a value into bits and a 0
// order   (rows, columns)   U: u32, or int64
// values  (rows, columns)   left out where nobody asks for them
// grid    one workgroup per row
// turns   128
// source  Merrill and Grimshaw 2011, "High performance and scalable radix sorting"
// uses    order

alias T = f32;
alias U = u32;
const WORKGROUP = 256u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;
// The lowest bit in which keys differ, which is 0, or 12 and more; and the one above the highest.
const FIRST = 0u;
const END = 32u;

struct Params {
    x_offset: u32,
    groups: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> order: array<U>;
@group(0) @binding(2) var<storage, read_write> values: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }
fn result(place: u32) -> U { return place; }
fn store_values(i: u32, value: T) { values[i] = value; }

// What changes places. Between: how many entries of a lane have digits n and n + 8, the low and the high half of
// word n * WORKGROUP + lane, with one slot in 9 left out, so that lanes meet different banks; sums of lanes.
var<workgroup> memory: array<u32, 16u * WORKGROUP>;
const SUMS = 9u * WORKGROUP;

// A lane's sixteen.
struct Entries {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
}

// Sixteen neighbours of each lane lie in different banks.
fn slot(i: u32) -> u32 { return i ^ ((i >> 5u) & 15u); }

fn tally_slot(i: u32) -> u32 { return i + i / 8u; }

fn key_at(row: u32, column: u32) -> u32 {
    let value = load_x(row * params.columns + min(column, params.columns - 1u));
    // behind all entries
    return select(0xffffffffu, order_key(apply(value)).x, column < params.columns);
}

fn put_keys(row: u32, i: u32) {
    let a = key_at(row, i);
    let b = key_at(row, i + WORKGROUP);
    let c = key_at(row, i + 2u * WORKGROUP);
    let d = key_at(row, i + 3u * WORKGROUP);
    memory[slot(i)] = a;
    memory[slot(i + WORKGROUP)] = b;
    memory[slot(i + 2u * WORKGROUP)] = c;
    memory[slot(i + 3u * WORKGROUP)] = d;
}

fn four_at(first: u32, swap: u32) -> vec4<u32> {
    return vec4<u32>(memory[first ^ swap], memory[(first + 1u) ^ swap], memory[(first + 2u) ^ swap],
        memory[(first + 3u) ^ swap]);
}

fn entries_of(lane: u32) -> Entries {
    let first = 16u * lane;
    let swap = (lane >> 1u) & 15u;
    return Entries(four_at(first, swap), four_at(first + 4u, swap), four_at(first + 8u, swap),
        four_at(first + 12u, swap));
}

fn put_four(ranks: vec4<u32>, words: vec4<u32>) {
    memory[slot(ranks.x)] = words.x;
    memory[slot(ranks.y)] = words.y;
    memory[slot(ranks.z)] = words.z;
    memory[slot(ranks.w)] = words.w;
}

// Every entry to its rank; what each lane then has.
fn exchanged(ranks: Entries, words: Entries, lane: u32) -> Entries {
    workgroupBarrier();
    put_four(ranks.a, words.a);
    put_four(ranks.b, words.b);
    put_four(ranks.c, words.c);
    put_four(ranks.d, words.d);
    workgroupBarrier();
    return entries_of(lane);
}

// How many entries of a lane with a digit there were before.
fn counted(digit: u32, lane: u32) -> u32 {
    let half = (digit & 8u) << 1u;
    let at = tally_slot((digit & 7u) * WORKGROUP + lane);
    let here = memory[at];
    memory[at] = here + (1u << half);
    return (here >> half) & 0xffffu;
}

fn count_four(words: vec4<u32>, shift: u32, lane: u32) -> vec4<u32> {
    let digits = (words >> vec4<u32>(shift)) & vec4<u32>(15u);
    let x = counted(digits.x, lane);
    let y = counted(digits.y, lane);
    let z = counted(digits.z, lane);
    return vec4<u32>(x, y, z, counted(digits.w, lane));
}

// After `scan`: how many entries come before the first of a lane with a digit.
fn before(digit: u32, lane: u32) -> u32 {
    return (memory[tally_slot((digit & 7u) * WORKGROUP + lane)] >> ((digit & 8u) << 1u)) & 0xffffu;
}

fn before_four(words: vec4<u32>, shift: u32, lane: u32) -> vec4<u32> {
    let digits = (words >> vec4<u32>(shift)) & vec4<u32>(15u);
    return vec4<u32>(before(digits.x, lane), before(digits.y, lane), before(digits.z, lane),
        before(digits.w, lane));
}

// The running sum over all words: of eight by a lane, then over the lanes.
fn scan(lane: u32) {
    workgroupBarrier();
    let first = 9u * lane;
    var own = 0u;
    for (var k = 0u; k < 8u; k++) {
        own += memory[first + k];
    }
    var running = own;
    for (var distance = 1u; distance < WORKGROUP; distance = distance * 2u) {
        memory[SUMS + lane] = running;
        workgroupBarrier();
        if (lane >= distance) {
            running += memory[SUMS + lane - distance];
        }
        workgroupBarrier();
    }
    memory[SUMS + lane] = running;
    workgroupBarrier();
    // All of the low digits come before the high ones.
    running = running - own + (memory[SUMS + WORKGROUP - 1u] << 16u);
    for (var k = 0u; k < 8u; k++) {
        let here = memory[first + k];
        memory[first + k] = running;
        running += here;
    }
    workgroupBarrier();
}

// Where entries go by the digit of these words.
fn ranks_of(words: Entries, shift: u32, lane: u32) -> Entries {
    workgroupBarrier();
    for (var n = 0u; n < 8u; n++) {
        memory[tally_slot(n * WORKGROUP + lane)] = 0u;
    }
    let a = count_four(words.a, shift, lane);
    let b = count_four(words.b, shift, lane);
    let c = count_four(words.c, shift, lane);
    let d = count_four(words.d, shift, lane);
    scan(lane);
    return Entries(a + before_four(words.a, shift, lane), b + before_four(words.b, shift, lane),
        c + before_four(words.c, shift, lane), d + before_four(words.d, shift, lane));
}

// Places in the low 12 bits of words.
fn joined(words: vec4<u32>, places: vec4<u32>) -> vec4<u32> { return (words & vec4<u32>(0xfffff000u)) | places; }

fn store(base: u32, i: u32) {
    if (i < params.columns) {
        let place = memory[slot(i)] & 0xfffu;
        order[base + i] = result(place);
        store_values(base + i, load_x(base + place));
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.groups) {
        return;
    }
    put_keys(row, lane);
    put_keys(row, lane + 4u * WORKGROUP);
    put_keys(row, lane + 8u * WORKGROUP);
    put_keys(row, lane + 12u * WORKGROUP);
    workgroupBarrier();
    var words = entries_of(lane);
    let own = vec4<u32>(16u * lane) + vec4<u32>(0u, 1u, 2u, 3u);
    var places = Entries(own, own + vec4<u32>(4u), own + vec4<u32>(8u), own + vec4<u32>(12u));
    if (FIRST == 0u) {
        for (var shift = 0u; shift < 8u; shift += 4u) {
            let ranks = ranks_of(words, shift, lane);
            words = exchanged(ranks, words, lane);
            places = exchanged(ranks, places, lane);
        }
        let ranks = ranks_of(words, 8u, lane);
        words = exchanged(ranks, Entries(joined(words.a, places.a), joined(words.b, places.b),
            joined(words.c, places.c), joined(words.d, places.d)), lane);
    } else {
        words = Entries(joined(words.a, places.a), joined(words.b, places.b), joined(words.c, places.c),
            joined(words.d, places.d));
    }
    for (var shift = max(FIRST, 12u); shift < END; shift += 4u) {
        words = exchanged(ranks_of(words, shift, lane), words, lane);
    }
    let base = row * params.columns;
    for (var i = lane; i < 16u * WORKGROUP; i += 4u * WORKGROUP) {
        store(base, i);
        store(base, i + WORKGROUP);
        store(base, i + 2u * WORKGROUP);
        store(base, i + 3u * WORKGROUP);
    }
}
