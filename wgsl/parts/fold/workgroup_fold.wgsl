// One value per lane, combined by the kernel's `apply`, known to every lane; in two levels, like
//   workgroup_sum.
//
// The kernel declares `alias T`, `fn apply(a: T, b: T) -> T`, which may combine in any order, and
// `const WORKGROUP`, a power of two. Every lane must call it, in uniform control flow.
//
// turns  at most 32

const WORKGROUP_FOLD_PARTS = min(16u, WORKGROUP);

var<workgroup> workgroup_fold_slots: array<T, WORKGROUP>;
var<workgroup> workgroup_fold_parts: array<T, WORKGROUP_FOLD_PARTS>;

fn workgroup_fold(lane: u32, value: T) -> T {
    workgroup_fold_slots[lane] = value;
    workgroupBarrier();
    if (lane < WORKGROUP_FOLD_PARTS) {
        var part = workgroup_fold_slots[lane];
        for (var k = 1u; k < WORKGROUP / WORKGROUP_FOLD_PARTS; k++) {
            part = apply(part, workgroup_fold_slots[k * WORKGROUP_FOLD_PARTS + lane]);
        }
        workgroup_fold_parts[lane] = part;
    }
    workgroupBarrier();  // also keeps the next call from the slots while they are read
    var result = workgroup_fold_parts[0];
    for (var k = 1u; k < WORKGROUP_FOLD_PARTS; k++) {
        result = apply(result, workgroup_fold_parts[k]);
    }
    return result;
}
