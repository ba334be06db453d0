// One product per lane, multiplied, known to lane 0, in steps of half as many lanes: a product of two takes so
//   long that chains of them must be short, unlike those of workgroup_fold.
//
// The kernel declares `const WORKGROUP`, a power of two. Every lane must call it, in uniform control flow.
//
// turns  8
// uses   product

var<workgroup> product_fold_slots: array<vec2<u32>, WORKGROUP>;

fn product_fold(lane: u32, value: vec2<u32>) -> vec2<u32> {
    var own = value;
    product_fold_slots[lane] = own;
    workgroupBarrier();
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            own = product_times(own, product_fold_slots[lane + half]);
            product_fold_slots[lane] = own;
        }
        workgroupBarrier();
    }
    return own;
}
