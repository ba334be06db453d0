// counts[row, d, b] = how many entries of block b of a row have digit d
//
// First step of a pass of a sort by digits; their running sum, then index/sort/radix_move.
//
// x       (rows, columns)       contiguous; `apply` turns a value into bits, high word first
// counts  (rows, 256, blocks)   u32
// grid    one workgroup per row and four blocks of BLOCK entries, a multiple of 8 * WORKGROUP
// turns   BLOCK // WORKGROUP + 8
// source  Merrill and Grimshaw 2011, "High performance and scalable radix sorting"
// uses    order

alias T = f32;
const WORKGROUP = 256u;
const BLOCK = 2048u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    x_offset: u32,
    groups: u32,
    columns: u32,
    blocks: u32,
    shift: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

// Of each block the counts of all digits.
var<workgroup> tally: array<atomic<u32>, 4u * WORKGROUP>;

fn digit_at(base: u32, column: u32) -> u32 {
    return order_digit(apply(load_x(base + min(column, params.columns - 1u))), params.shift);
}

fn four_digits(base: u32, column: u32) -> vec4<u32> {
    return vec4<u32>(digit_at(base, column), digit_at(base, column + WORKGROUP),
        digit_at(base, column + 2u * WORKGROUP), digit_at(base, column + 3u * WORKGROUP));
}

fn count_one(digit: u32, column: u32, block: u32) {
    if (column < params.columns) {
        atomicAdd(&tally[block * WORKGROUP + digit], 1u);
    }
}

fn count_four(digits: vec4<u32>, column: u32, block: u32) {
    count_one(digits.x, column, block);
    count_one(digits.y, column + WORKGROUP, block);
    count_one(digits.z, column + 2u * WORKGROUP, block);
    count_one(digits.w, column + 3u * WORKGROUP, block);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let fours = (params.blocks + 3u) / 4u;
    let row = group / fours;
    let first = group % fours * 4u;
    for (var k = 0u; k < 4u; k++) {
        atomicStore(&tally[k * WORKGROUP + lane], 0u);
    }
    workgroupBarrier();
    for (var i = lane; i < 4u * BLOCK; i += 8u * WORKGROUP) {
        let base = row * params.columns;
        let digits_0 = four_digits(base, first * BLOCK + i);
        let digits_1 = four_digits(base, first * BLOCK + i + 4u * WORKGROUP);
        count_four(digits_0, first * BLOCK + i, i / BLOCK);
        count_four(digits_1, first * BLOCK + i + 4u * WORKGROUP, i / BLOCK);
    }
    workgroupBarrier();
    // Neighbouring lanes have neighbouring blocks, and store side by side.
    for (var i = lane; i < 4u * WORKGROUP; i += WORKGROUP) {
        let block = first + i % 4u;
        if (block < params.blocks) {
            let sum = atomicLoad(&tally[i % 4u * WORKGROUP + i / 4u]);
            counts[(row * 256u + i / 4u) * params.blocks + block] = sum;
        }
    }
}
