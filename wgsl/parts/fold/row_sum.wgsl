// The sum of one value per lane over the LANES neighbouring lanes that share a row, known to each
//   of them.
//
// For rows so short that a workgroup holds several. The kernel declares `const WORKGROUP` and
// `const LANES`, which divides it. Every lane must call it, in uniform control flow.
//
// turns  LANES

var<workgroup> row_sum_slots: array<f32, WORKGROUP>;

fn row_sum(lane: u32, value: f32) -> f32 {
    row_sum_slots[lane] = value;
    workgroupBarrier();
    let first = lane / LANES * LANES;
    var total = row_sum_slots[first];
    for (var k = 1u; k < LANES; k++) {
        total += row_sum_slots[first + k];
    }
    workgroupBarrier();  // the next call may write the slots
    return total;
}
