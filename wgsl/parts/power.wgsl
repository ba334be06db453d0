// power(a, b)      a^b with PyTorch's results for zero, negative and infinite arguments; small integer powers are products
// power_i32, power_u32  integer powers by squaring; negative exponents of integers give 0 or a unit

fn power(a: f32, b: f32) -> f32 {
    if (b == 0.0 || a == 1.0) { return 1.0; }
    if (is_nan(a)) { return a; }
    if (is_nan(b)) { return b; }
    if (a == -1.0 && abs(b) > 3.4028234e38) { return 1.0; }
    if (b == 1.0) { return a; }
    if (b == 2.0) { return a * a; }
    if (b == 0.5 && a >= 0.0) { return sqrt(a); }
    if (b == -1.0) { return 1.0 / a; }
    let whole = b == trunc(b);
    if (whole && abs(b) <= 64.0) {
        var result = 1.0;
        var base = a;
        var n = u32(abs(b));
        while (n != 0u) {
            if ((n & 1u) != 0u) { result *= base; }
            base *= base;
            n >>= 1u;
        }
        return select(result, 1.0 / result, b < 0.0);
    }
    let infinite = (bitcast<u32>(a) & 0x7fffffffu) == 0x7f800000u;
    if (a < 0.0 && !whole && !infinite) { return bitcast<f32>(0x7fc00000u | (bitcast<u32>(a) & 0x80000000u)); }
    let odd = whole && abs(b) < 16777216.0 && (i32(b) & 1) == 1;
    if (a == 0.0) {
        let zero = select(0.0, a, odd);
        return select(zero, infinity(zero), b < 0.0);
    }
    if (infinite) {
        let signed = select(abs(a), a, odd);
        return select(signed, select(0.0, -0.0, signed < 0.0), b < 0.0);
    }
    let v = exp_product(log_of(abs(a)), abs(a), b);
    return select(v, -v, a < 0.0 && odd);
}

// exp(b log a) with the rounding error of the logarithm folded back in.
fn exp_product(logarithm: f32, a: f32, b: f32) -> f32 {
    let product = b * logarithm;
    let lost = fma(b, logarithm, -product);
    let whole = exp_of(product);
    if (whole == 0.0 || abs(product) > 88.7) { return whole; }
    // log a = logarithm + (a / exp(logarithm) - 1) to first order.
    let correction = a / exp_of(logarithm) - 1.0;
    return whole + whole * (lost + b * correction);
}

fn power_u32(a: u32, b: u32) -> u32 {
    var result = 1u;
    var base = a;
    var n = b;
    while (n != 0u) {
        if ((n & 1u) != 0u) { result *= base; }
        base *= base;
        n >>= 1u;
    }
    return result;
}

fn power_i32(a: i32, b: i32) -> i32 {
    if (b < 0) { return select(select(0, select(1, -1, (b & 1) == 1), a == -1), 1, a == 1); }
    return bitcast<i32>(power_u32(bitcast<u32>(a), u32(b)));
}
