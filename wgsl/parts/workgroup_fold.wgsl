// One value per lane, combined by the kernel's `apply` in a tree; known to every lane.
//
// The kernel declares `alias T`, `fn apply(a: T, b: T) -> T` and `const WORKGROUP`, a power of two.
// Every lane must call it, in uniform control flow.

var<workgroup> workgroup_fold_slots: array<T, WORKGROUP>;

fn workgroup_fold(lane: u32, value: T) -> T {
    workgroup_fold_slots[lane] = value;
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            workgroup_fold_slots[lane] = apply(workgroup_fold_slots[lane],
                workgroup_fold_slots[lane + width]);
        }
        workgroupBarrier();
    }
    let result = workgroup_fold_slots[0];
    workgroupBarrier();  // the next call may write the slots
    return result;
}
