// The sum of one value per lane, known to every lane: workgroup_sum, where the device has
//   subgroups.
//
// Each subgroup adds up in registers; then every lane adds the subgroups' sums. It takes as given
// that a subgroup is a run of neighbouring lanes, and that each but for its last lanes is full;
// reduce/subgroups tests it on the device. The kernel declares `const WORKGROUP`. Every lane must
// call it, in uniform control flow.
//
// turns  WORKGROUP / size of a subgroup

var<workgroup> subgroup_sum_slots: array<f32, WORKGROUP / 4u>;  // no subgroup is smaller than 4

fn subgroup_sum(lane: u32, value: f32) -> f32 {
    let part = subgroupAdd(value);
    let size = subgroupAdd(1u);
    if (subgroupBroadcastFirst(lane) == lane) {
        subgroup_sum_slots[lane / size] = part;
    }
    workgroupBarrier();
    var total = subgroup_sum_slots[0];
    for (var k = 1u; k < WORKGROUP / size; k++) {
        total += subgroup_sum_slots[k];
    }
    workgroupBarrier();  // the next call may write the slots
    return total;
}
