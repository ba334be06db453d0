// the digit at which the entries of a row that agree so far pass its rank becomes known
//
// Second step of a pass of a selection by digits, see reduce/select_count; with `begins` there is no first
// one, and nothing is known yet. Counts are 0 afterwards.
//
// counts  (rows, 257)   u32
// known   (rows, 4)     u32
// places  (rows,)       u32; after the last pass the place of the entry
// grid    one workgroup per row
// turns   257 // WORKGROUP + 32

const WORKGROUP = 64u;
// The rank is a number, that of the median, which is NaN where there is one, or of the others' median.
const RANK = 0u;

struct Params {
    groups: u32,
    columns: u32,
    word: u32,
    shift: u32,
    rank: u32,
    begins: u32,
}

@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@group(0) @binding(1) var<storage, read_write> known: array<u32>;
@group(0) @binding(2) var<storage, read_write> places: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;

var<workgroup> tally: array<u32, 256>;
var<workgroup> sums: array<u32, 16>;

fn rank_of(row: u32) -> u32 {
    if (params.word != 0u || params.shift != 24u) {
        return known[4u * row + 3u];
    }
    let lost = counts[257u * row + 256u];
    if (RANK == 1u) {
        return select((params.columns - 1u) / 2u, params.columns - lost, lost > 0u);
    }
    if (RANK == 2u) {
        return (max(params.columns - lost, 1u) - 1u) / 2u;
    }
    return params.rank;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.groups) {
        return;
    }
    for (var d = lane; d < 256u; d += WORKGROUP) {
        tally[d] = counts[257u * row + d];
    }
    workgroupBarrier();
    if (lane < 16u) {
        var sum = 0u;
        for (var k = 0u; k < 16u; k++) {
            sum += tally[16u * lane + k];
        }
        sums[lane] = sum;
    }
    workgroupBarrier();
    if (lane == 0u && params.begins == 0u) {
        var rank = rank_of(row);
        var digit = 0u;
        for (; digit < 240u && rank >= sums[digit / 16u]; digit += 16u) {
            rank -= sums[digit / 16u];
        }
        for (var k = 0u; k < 15u && rank >= tally[digit]; k++) {
            rank -= tally[digit];
            digit++;
        }
        let at = 4u * row + params.word;
        known[at] |= digit << params.shift;
        known[4u * row + 3u] = rank;
        places[row] = known[4u * row + 2u];
    } else if (lane < 4u && params.begins == 1u) {
        known[4u * row + lane] = 0u;
    }
    for (var d = lane; d < 257u; d += WORKGROUP) {
        counts[257u * row + d] = 0u;
    }
}
