// The largest of one value per lane, known to every lane; see subgroup_sum.
//
// turns  WORKGROUP / size of a subgroup

var<workgroup> subgroup_max_slots: array<f32, WORKGROUP / 4u>;

fn subgroup_max(lane: u32, value: f32) -> f32 {
    let part = subgroupMax(value);
    let size = subgroupAdd(1u);
    if (subgroupBroadcastFirst(lane) == lane) {
        subgroup_max_slots[lane / size] = part;
    }
    workgroupBarrier();
    var largest = subgroup_max_slots[0];
    for (var k = 1u; k < WORKGROUP / size; k++) {
        largest = max(largest, subgroup_max_slots[k]);
    }
    workgroupBarrier();  // the next call may write the slots
    return largest;
}
