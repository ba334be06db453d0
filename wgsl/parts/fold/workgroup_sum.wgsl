// The sum of one value per lane, known to every lane.
//
// In two levels, of at most 16 values each for 256 lanes: two barriers, where a tree takes one per
// halving. The kernel declares `const WORKGROUP`, a power of two. Every lane must call it, in
// uniform control flow.
//
// turns  at most 32

const WORKGROUP_SUM_PARTS = min(16u, WORKGROUP);

var<workgroup> workgroup_sum_slots: array<f32, WORKGROUP>;
var<workgroup> workgroup_sum_parts: array<f32, WORKGROUP_SUM_PARTS>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    workgroup_sum_slots[lane] = value;
    workgroupBarrier();
    if (lane < WORKGROUP_SUM_PARTS) {
        var part = workgroup_sum_slots[lane];
        for (var k = 1u; k < WORKGROUP / WORKGROUP_SUM_PARTS; k++) {
            part += workgroup_sum_slots[k * WORKGROUP_SUM_PARTS + lane];
        }
        workgroup_sum_parts[lane] = part;
    }
    workgroupBarrier();  // also keeps the next call from the slots while they are read
    var total = workgroup_sum_parts[0];
    for (var k = 1u; k < WORKGROUP_SUM_PARTS; k++) {
        total += workgroup_sum_parts[k];
    }
    return total;
}
