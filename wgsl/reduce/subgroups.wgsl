// out[0] = the number of lanes to which subgroup_sum and subgroup_max told what is right, three
//   times in a row
//
// A test of the device, not a step of an op: see pellucid/op/kernel/subgroups.py.
//
// out   (1)   starts at 0
// grid  one workgroup
// turns 256
// uses  subgroup_max, subgroup_sum

const WORKGROUP = 256u;

@group(0) @binding(0) var<storage, read_write> out: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    var is_right = true;
    for (var round = 1u; round <= 3u; round++) {
        let total = subgroup_sum(lane, f32(round * lane));
        // one lane has a number above that of the others, in every round another
        let largest = subgroup_max(lane,
            select(-5.0, -f32(round), lane == round * 37u % WORKGROUP));
        is_right = is_right && largest == -f32(round)
            && total == f32(round * (WORKGROUP / 2u) * (WORKGROUP - 1u));
    }
    if (is_right) {
        atomicAdd(&out[0], 1u);
    }
}
