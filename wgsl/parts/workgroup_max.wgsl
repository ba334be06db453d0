// The largest of one value per lane, known to every lane.
//
// The kernel declares `const WORKGROUP`, a power of two. Every lane must call it, in uniform
// control flow.

var<workgroup> workgroup_max_slots: array<f32, WORKGROUP>;

fn workgroup_max(lane: u32, value: f32) -> f32 {
    workgroup_max_slots[lane] = value;
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            workgroup_max_slots[lane] = max(workgroup_max_slots[lane], workgroup_max_slots[lane
                + width]);
        }
        workgroupBarrier();
    }
    let largest = workgroup_max_slots[0];
    workgroupBarrier();  // the next call may write the slots
    return largest;
}
