// The sum of one value per lane, known to every lane; a tree, so the rounding error grows with
//   log2(WORKGROUP).
//
// The kernel declares `const WORKGROUP`, a power of two. Every lane must call it, in uniform
// control flow.

var<workgroup> workgroup_sum_slots: array<f32, WORKGROUP>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    workgroup_sum_slots[lane] = value;
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            workgroup_sum_slots[lane] += workgroup_sum_slots[lane + width];
        }
        workgroupBarrier();
    }
    let total = workgroup_sum_slots[0];
    workgroupBarrier();  // the next call may write the slots
    return total;
}
