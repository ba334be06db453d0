// Inclusive scan over the lanes: lane l gets apply(value[0], ..., value[l]).
//
// In three steps: up to 16 lanes scan neighbouring slots, the same lanes scan their totals, then each
// lane adds the total before its own. Slots are padded, so that the lanes that scan meet different
// banks of the memory. The kernel declares `alias T`, `fn apply(a: T, b: T) -> T` and
// `const WORKGROUP`, a power of two. Every lane must call it, in uniform control flow; until the
// next call workgroup_scanned(l) is what lane l got.
//
// turns  at most 32

const WORKGROUP_SCAN_PARTS = min(16u, WORKGROUP);
const WORKGROUP_SCAN_CHUNK = WORKGROUP / WORKGROUP_SCAN_PARTS;

var<workgroup> workgroup_scan_slots: array<T, WORKGROUP + WORKGROUP_SCAN_PARTS>;
var<workgroup> workgroup_scan_totals: array<T, WORKGROUP_SCAN_PARTS>;
var<workgroup> workgroup_scan_before: array<T, WORKGROUP_SCAN_PARTS>;

fn workgroup_scanned(lane: u32) -> T {
    let part = lane / WORKGROUP_SCAN_CHUNK;
    let own = workgroup_scan_slots[lane + part];
    if (part == 0u) {
        return own;
    }
    return apply(workgroup_scan_before[part], own);
}

fn workgroup_scan(lane: u32, value: T) -> T {
    workgroupBarrier();  // what an earlier call left may still be read
    workgroup_scan_slots[lane + lane / WORKGROUP_SCAN_CHUNK] = value;
    workgroupBarrier();
    if (lane < WORKGROUP_SCAN_PARTS) {
        let first = lane * (WORKGROUP_SCAN_CHUNK + 1u);
        var total = workgroup_scan_slots[first];
        for (var k = 1u; k < WORKGROUP_SCAN_CHUNK; k++) {
            total = apply(total, workgroup_scan_slots[first + k]);
            workgroup_scan_slots[first + k] = total;
        }
        workgroup_scan_totals[lane] = total;
    }
    workgroupBarrier();
    if (lane > 0u && lane < WORKGROUP_SCAN_PARTS) {
        var before = workgroup_scan_totals[0];
        for (var k = 1u; k < lane; k++) {
            before = apply(before, workgroup_scan_totals[k]);
        }
        workgroup_scan_before[lane] = before;
    }
    workgroupBarrier();
    return workgroup_scanned(lane);
}
