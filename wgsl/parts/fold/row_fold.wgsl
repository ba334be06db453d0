// One value per lane, combined by the kernel's `apply` over the LANES neighbouring lanes that share
//   a row, known to each of them; see row_sum.
//
// The kernel also declares `alias T` and `fn apply(a: T, b: T) -> T`.
//
// turns  LANES

var<workgroup> row_fold_slots: array<T, WORKGROUP>;

fn row_fold(lane: u32, value: T) -> T {
    row_fold_slots[lane] = value;
    workgroupBarrier();
    let first = lane / LANES * LANES;
    var result = row_fold_slots[first];
    for (var k = 1u; k < LANES; k++) {
        result = apply(result, row_fold_slots[first + k]);
    }
    workgroupBarrier();  // the next call may write the slots
    return result;
}
