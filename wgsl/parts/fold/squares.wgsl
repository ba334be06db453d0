// square_of(x)              x^2, or less 2^-120 times it where squares of such numbers add up past floats
// squares_added(a, b)       the sum of two of them
// squares_over(total, n)    what a total stands for, divided by n
// squares_root(total, n)    the square root of that, which may be finite where that is not
//
// No square is negative: a negative number stands for its size times 2^120.

const SQUARES_FAR = 1.7014118346046923e38;

fn square_of(x: f32) -> f32 {
    if (abs(x) < 9.223372036854776e18) { return x * x; }
    let far = x * 8.673617379884035e-19;
    return -(far * far);
}

fn squares_far(x: f32) -> f32 { return select(x * 7.52316384526264e-37, -x, x < 0.0); }

fn squares_added(a: f32, b: f32) -> f32 {
    let sum = a + b;
    if (min(a, b) >= 0.0 && sum < SQUARES_FAR) { return sum; }
    return -(squares_far(a) + squares_far(b));
}

fn squares_over(total: f32, n: f32) -> f32 {
    return select(total / n, -total / n * 1.329227995784916e36, total < 0.0);
}

fn squares_root(total: f32, n: f32) -> f32 {
    return select(sqrt(total / n), sqrt(-total / n) * 1.152921504606847e18, total < 0.0);
}
