// The largest of one value per lane, known to every lane; in two levels, like workgroup_sum.
//
// The kernel declares `const WORKGROUP`, a power of two. Every lane must call it, in uniform
// control flow.
//
// turns  at most 32

const WORKGROUP_MAX_PARTS = min(16u, WORKGROUP);

var<workgroup> workgroup_max_slots: array<f32, WORKGROUP>;
var<workgroup> workgroup_max_parts: array<f32, WORKGROUP_MAX_PARTS>;

fn workgroup_max(lane: u32, value: f32) -> f32 {
    workgroup_max_slots[lane] = value;
    workgroupBarrier();
    if (lane < WORKGROUP_MAX_PARTS) {
        var part = workgroup_max_slots[lane];
        for (var k = 1u; k < WORKGROUP / WORKGROUP_MAX_PARTS; k++) {
            part = max(part, workgroup_max_slots[k * WORKGROUP_MAX_PARTS + lane]);
        }
        workgroup_max_parts[lane] = part;
    }
    workgroupBarrier();  // also keeps the next call from the slots while they are read
    var largest = workgroup_max_parts[0];
    for (var k = 1u; k < WORKGROUP_MAX_PARTS; k++) {
        largest = max(largest, workgroup_max_parts[k]);
    }
    return largest;
}
