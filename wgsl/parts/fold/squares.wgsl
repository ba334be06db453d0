// square_of(x, c, f)        (x - c * f)^2, or less 2^-168 times it where squares of such numbers add
//                           up past floats
// squares_added(a, b)       the sum of two of them
// squares_times(a, n)       n of them, n being 1 or more
// squares_over(total, n)    what a total stands for, divided by n
// squares_root(total, n)    the square root of that, which may be finite where that is not
//
// No square is negative: a negative number stands for its size times 2^168.

const SQUARES_FAR = 1.7014118346046923e38;
// 2^-84 and 2^84
const SQUARES_DOWN = 5.169878828456423e-26;
const SQUARES_UP = 1.9342813113834067e25;

fn square_of(x: f32, c: f32, f: f32) -> f32 {
    let far = x * SQUARES_DOWN - c * SQUARES_DOWN * f;
    let near = x - c * f;
    return select(-(far * far), near * near, abs(far) < 4.76837158203125e-7);
}

// By the exponent: of a product with two powers compilers make one with theirs, which is 0.
fn squares_far(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits >= 0x7f800000u) { return -x; }
    return select(0.0, bitcast<f32>(bits - (168u << 23u)), bits >= (169u << 23u));
}

fn squares_added(a: f32, b: f32) -> f32 {
    let sum = a + b;
    if (min(a, b) >= 0.0 && sum < SQUARES_FAR) { return sum; }
    return -(squares_far(a) + squares_far(b));
}

fn squares_times(a: f32, n: f32) -> f32 {
    let total = a * n;
    if (a >= 0.0 && total < SQUARES_FAR) { return total; }
    return -(squares_far(a) * n);
}

fn squares_over(total: f32, n: f32) -> f32 {
    // past 2^-40 the product is infinite
    let bits = bitcast<u32>(min(-total / n, 1.0)) + (84u << 23u);
    return select(total / n, bitcast<f32>(bits) * SQUARES_UP, total < 0.0);
}

fn squares_root(total: f32, n: f32) -> f32 {
    return select(sqrt(total / n), sqrt(-total / n) * SQUARES_UP, total < 0.0);
}
