// counts[row, d, b] = how many entries of block b of a row have digit d
//
// First step of a pass of a sort by digits; their running sum, then index/sort/radix_move.
//
// x       (rows, columns)      contiguous; `apply` turns a value into bits, high word first
// counts  (rows, 16, blocks)   u32
// grid    one workgroup per row and block of BLOCK entries
// turns   BLOCK // WORKGROUP + 16
// source  Merrill and Grimshaw 2011, "High performance and scalable radix sorting"
// uses    order

alias T = f32;
const WORKGROUP = 256u;
const BLOCK = 4096u;
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

// Of each digit 16, so that few lanes meet.
var<workgroup> tally: array<atomic<u32>, 256>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let block = group % params.blocks;
    atomicStore(&tally[lane], 0u);
    workgroupBarrier();
    for (var i = lane; i < BLOCK; i += WORKGROUP) {
        let column = block * BLOCK + i;
        if (column < params.columns) {
            let digit = order_digit(apply(load_x(row * params.columns + column)), params.shift);
            atomicAdd(&tally[digit * 16u + lane % 16u], 1u);
        }
    }
    workgroupBarrier();
    if (lane < 16u) {
        var sum = 0u;
        for (var k = 0u; k < 16u; k++) {
            sum += atomicLoad(&tally[lane * 16u + k]);
        }
        counts[(row * 16u + lane) * params.blocks + block] = sum;
    }
}
