// counts[row, d] += how many entries of a row that agree with what is known of it have digit d
//
// First step of a pass of a selection by digits, the highest first; then reduce/select_digit. What is known
// is the beginning of the key and, once that is whole, of the place: so equal values are told apart.
//
// x       (rows, columns)   contiguous; `apply` turns a value into bits, high word first
// known   (rows, 4)         u32: the key's two words, the place, the rank among those that agree
// counts  (rows, 257)       u32; the last one is of NaN, where the word is the key's first
// grid    one workgroup per row and block of BLOCK entries
// turns   BLOCK // WORKGROUP
// source  Alabi et al. 2012, "Fast k-selection algorithms for graphics processing units"
// uses    order

alias T = f32;
const WORKGROUP = 256u;
const BLOCK = 16384u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    x_offset: u32,
    groups: u32,
    columns: u32,
    blocks: u32,
    word: u32,
    shift: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> known: array<u32>;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

var<workgroup> tally: array<atomic<u32>, 256>;
var<workgroup> lost: atomic<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let block = group % params.blocks;
    let sought = vec3<u32>(known[4u * row], known[4u * row + 1u], known[4u * row + 2u]);
    // What must agree: words before this one, and of this one the digits above.
    var mask = vec3<u32>(0u);
    for (var k = 0u; k < 3u; k++) {
        mask[k] = select(0u, 0xffffffffu, k < params.word);
    }
    mask[params.word] = select(0xffffffffu << (params.shift + 8u), 0u, params.shift == 24u);
    for (var d = lane; d < 256u; d += WORKGROUP) {
        atomicStore(&tally[d], 0u);
    }
    if (lane == 0u) {
        atomicStore(&lost, 0u);
    }
    workgroupBarrier();
    for (var i = lane; i < BLOCK; i += WORKGROUP) {
        let column = block * BLOCK + i;
        if (column < params.columns) {
            let key = order_key(apply(load_x(row * params.columns + column)));
            let entry = vec3<u32>(key, column);
            if (all(((entry ^ sought) & mask) == vec3<u32>(0u))) {
                atomicAdd(&tally[(entry[params.word] >> params.shift) & 255u], 1u);
            }
            if (FLOAT && key.x == 0xffffffffu) {
                atomicAdd(&lost, 1u);
            }
        }
    }
    workgroupBarrier();
    for (var d = lane; d < 256u; d += WORKGROUP) {
        let found = atomicLoad(&tally[d]);
        if (found != 0u) {
            atomicAdd(&counts[257u * row + d], found);
        }
    }
    if (lane == 0u) {
        atomicAdd(&counts[257u * row + 256u], atomicLoad(&lost));
    }
}
