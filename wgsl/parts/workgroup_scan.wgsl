// Inclusive scan over the lanes: lane l gets apply(value[0], ..., value[l]) (Hillis and Steele).
//
// The kernel declares `alias T`, `fn apply(a: T, b: T) -> T` and `const WORKGROUP`, a power of two.
// Every lane must call it, in uniform control flow. Afterwards workgroup_scan_slots holds the whole
// scan until the next call; a barrier has passed.

var<workgroup> workgroup_scan_slots: array<T, WORKGROUP>;

fn workgroup_scan(lane: u32, value: T) -> T {
    var result = value;
    workgroupBarrier();  // slots of an earlier call may still be read
    workgroup_scan_slots[lane] = result;
    workgroupBarrier();
    for (var distance = 1u; distance < WORKGROUP; distance = distance * 2u) {
        if (lane >= distance) {
            result = apply(workgroup_scan_slots[lane - distance], result);
        }
        workgroupBarrier();
        workgroup_scan_slots[lane] = result;
        workgroupBarrier();
    }
    return result;
}
