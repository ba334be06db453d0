// The running (maximum, sum of exponentials) of a softmax, exact about infinities and NaN without
//   computing with them.
//
// `largest` starts at the lowest finite f32, and -inf adds nothing. A NaN or +inf poisons the
// state: its total is negative from then on. The kernel declares `const LOG`.

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

fn softmax_is_finite(values: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(values) & vec4<u32>(0x7fffffffu)) < vec4<u32>(0x7f800000u);
}

// Whether one of them is a NaN or +inf.
fn softmax_is_poison(values: vec4<f32>) -> bool {
    return any(!softmax_is_finite(values)
        & (bitcast<vec4<u32>>(values) != vec4<u32>(0xff800000u)));
}

fn softmax_peak(values: vec4<f32>) -> f32 {
    let finite = select(vec4<f32>(SOFTMAX_LOWEST), values, softmax_is_finite(values));
    return max(max(finite.x, finite.y), max(finite.z, finite.w));
}

// exp of a difference that is at most zero; exactly 0 where the true value is below the smallest
// subnormal
fn softmax_exp(difference: f32) -> f32 {
    return select(exp(max(difference, -104.0)), 0.0, difference < -103.9);
}

// exp(value - largest), 0 for what is not finite
fn softmax_exps(values: vec4<f32>, largest: f32) -> vec4<f32> {
    let is_finite = softmax_is_finite(values);
    let differences = select(vec4<f32>(-104.0), values - largest, is_finite);
    return select(exp(max(differences, vec4<f32>(-104.0))), vec4<f32>(),
        differences < vec4<f32>(-103.9));
}

// With four values more, of which those outside repeat others of the row.
fn softmax_add(state: Softmax, values: vec4<f32>, inside: vec4<bool>) -> Softmax {
    if (state.total < 0.0 || softmax_is_poison(values)) {
        return Softmax(state.largest, SOFTMAX_POISON);
    }
    let largest = max(state.largest, softmax_peak(values));
    let shares = select(vec4<f32>(), softmax_exps(values, largest), inside);
    return Softmax(largest, state.total * softmax_exp(state.largest - largest)
        + ((shares.x + shares.y) + (shares.z + shares.w)));
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

// What stands for an element until the total is known: its exponential, or with LOG itself.
fn softmax_share(value: f32, largest: f32) -> f32 {
    if (LOG) {
        return value;
    }
    return softmax_exp(value - largest);
}

// The result for an element. `any` is a run-time number: a NaN must not be a constant expression.
fn softmax_scaled(share: f32, state: Softmax, any: u32) -> f32 {
    if (state.total <= 0.0) {
        return bitcast<f32>(0x7fc00000u | (any & 1u));
    }
    if (LOG) {
        return (share - state.largest) - log(state.total);
    }
    return share / state.total;
}
