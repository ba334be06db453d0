// The running (maximum, sum of exponentials) of a softmax, exact about infinities and NaN without
//   computing with them.
//
// `largest` starts at the lowest finite f32, so -inf adds nothing; a NaN or +inf marks the state as
// poisoned. The kernel declares `const WORKGROUP`, a power of two, and `const LOG`.

struct Softmax {
    largest: f32,
    total: f32,
    poisoned: bool,
}

var<workgroup> softmax_largest: array<f32, WORKGROUP>;
var<workgroup> softmax_total: array<f32, WORKGROUP>;
var<workgroup> softmax_poisoned: array<u32, WORKGROUP>;

fn softmax_empty() -> Softmax {
    return Softmax(-3.4028234e38, 0.0, false);
}

// exp of a difference that is at most zero; exactly 0 where the true value is below the smallest
// subnormal
fn softmax_exp(difference: f32) -> f32 {
    return select(exp(max(difference, -104.0)), 0.0, difference < -103.9);
}

fn softmax_add(state: Softmax, value: f32) -> Softmax {
    let bits = bitcast<u32>(value);
    if (bits == 0xff800000u) {
        return state;
    }
    if ((bits & 0x7fffffffu) >= 0x7f800000u) {
        return Softmax(state.largest, state.total, true);
    }
    if (value <= state.largest) {
        return Softmax(state.largest, state.total + softmax_exp(value - state.largest),
            state.poisoned);
    }
    return Softmax(value, state.total * softmax_exp(state.largest - value) + 1.0, state.poisoned);
}

fn softmax_merge(a: Softmax, b: Softmax) -> Softmax {
    let largest = max(a.largest, b.largest);
    let total = a.total * softmax_exp(a.largest - largest) + b.total
        * softmax_exp(b.largest - largest);
    return Softmax(largest, total, a.poisoned || b.poisoned);
}

fn softmax_workgroup(lane: u32, value: Softmax) -> Softmax {
    var state = value;
    softmax_largest[lane] = state.largest;
    softmax_total[lane] = state.total;
    softmax_poisoned[lane] = select(0u, 1u, state.poisoned);
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width = width / 2u) {
        if (lane < width) {
            let other = lane + width;
            state = softmax_merge(
                state, Softmax(softmax_largest[other], softmax_total[other],
                    softmax_poisoned[other] == 1u));
            softmax_largest[lane] = state.largest;
            softmax_total[lane] = state.total;
            softmax_poisoned[lane] = select(0u, 1u, state.poisoned);
        }
        workgroupBarrier();
    }
    let result = Softmax(softmax_largest[0], softmax_total[0], softmax_poisoned[0] == 1u);
    workgroupBarrier();  // the next call may write the slots
    return result;
}

// `any` is a run-time number: a NaN must not be a constant expression
fn softmax_finish(state: Softmax, value: f32, any: u32) -> f32 {
    if (state.poisoned || state.total == 0.0) {
        return bitcast<f32>(0x7fc00000u | (any & 1u));
    }
    if (LOG) {
        return (value - state.largest) - log(state.total);
    }
    return softmax_exp(value - state.largest) / state.total;
}
