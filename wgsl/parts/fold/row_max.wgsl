// The largest of one value per lane over the LANES neighbouring lanes that share a row, known to
//   each of them; see row_sum.
//
// turns  LANES

var<workgroup> row_max_slots: array<f32, WORKGROUP>;

fn row_max(lane: u32, value: f32) -> f32 {
    row_max_slots[lane] = value;
    workgroupBarrier();
    let first = lane / LANES * LANES;
    var largest = row_max_slots[first];
    for (var k = 1u; k < LANES; k++) {
        largest = max(largest, row_max_slots[first + k]);
    }
    workgroupBarrier();  // the next call may write the slots
    return largest;
}
