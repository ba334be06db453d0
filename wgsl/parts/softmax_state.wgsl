// The running (maximum, sum of exponentials) of a softmax, exact about infinities and NaN without
//   computing with them.
//
// `largest` starts at the lowest finite f32, so -inf adds nothing. A NaN or +inf poisons the state:
// its total is negative from then on. The kernel declares `const LOG`.

const SOFTMAX_LOWEST = -3.4028234e38;
// Far below the negative of any sum of exponentials that are at most 1, so sums with it stay
// negative.
const SOFTMAX_POISON = -1e30;

struct Softmax {
    largest: f32,
    total: f32,
}

fn softmax_empty() -> Softmax {
    return Softmax(SOFTMAX_LOWEST, 0.0);
}

fn softmax_is_poison(value: f32) -> bool {
    let bits = bitcast<u32>(value);
    return (bits & 0x7fffffffu) >= 0x7f800000u && bits != 0xff800000u;
}

// exp of a difference that is at most zero; exactly 0 where the true value is below the smallest
// subnormal
fn softmax_exp(difference: f32) -> f32 {
    return select(exp(max(difference, -104.0)), 0.0, difference < -103.9);
}

fn softmax_add(state: Softmax, value: f32) -> Softmax {
    if (state.total < 0.0 || bitcast<u32>(value) == 0xff800000u) {
        return state;
    }
    if (softmax_is_poison(value)) {
        return Softmax(state.largest, SOFTMAX_POISON);
    }
    if (value <= state.largest) {
        return Softmax(state.largest, state.total + softmax_exp(value - state.largest));
    }
    return Softmax(value, state.total * softmax_exp(state.largest - value) + 1.0);
}

// The total as it is with a maximum that is not below the state's own.
fn softmax_total(state: Softmax, largest: f32) -> f32 {
    return select(state.total * softmax_exp(state.largest - largest), SOFTMAX_POISON,
        state.total < 0.0);
}

fn softmax_merge(a: Softmax, b: Softmax) -> Softmax {
    let largest = max(a.largest, b.largest);
    return Softmax(largest, softmax_total(a, largest) + softmax_total(b, largest));
}

// What stands for an element: its exponential, or with LOG itself; `softmax_scaled` makes the
// result of it.
fn softmax_share(value: f32, largest: f32) -> f32 {
    if (LOG) {
        return value;
    }
    return softmax_exp(value - largest);
}

// `any` is a run-time number: a NaN must not be a constant expression
fn softmax_scaled(share: f32, state: Softmax, any: u32) -> f32 {
    if (state.total <= 0.0) {
        return bitcast<f32>(0x7fc00000u | (any & 1u));
    }
    if (LOG) {
        return (share - state.largest) - log(state.total);
    }
    return share / state.total;
}
