// exp_of(x), expm1_of(x), log_of(x), log1p_of(x): with PyTorch's results at infinities, zero and NaN, and accurate near zero.

fn infinity(sign: f32) -> f32 { return bitcast<f32>(0x7f800000u | (bitcast<u32>(sign) & 0x80000000u)); }

fn exp_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
    if (x > 88.72284) { return infinity(1.0); }
    if (x < -103.97208) { return 0.0; }
    // exp(x) = 2^n exp(r) with |r| <= ln 2 / 2, ln 2 in two parts; the polynomial is Taylor's to degree 7.
    let n = round(x * 1.44269504);
    let r = (x - n * 0.693359375) - n * -2.12194440e-4;
    var p = 1.9841270e-4;
    p = p * r + 1.3888889e-3;
    p = p * r + 8.3333333e-3;
    p = p * r + 4.1666667e-2;
    p = p * r + 1.6666667e-1;
    p = p * r + 0.5;
    p = (p * r) * r + r + 1.0;
    // Two factors, since 2^n itself may lie outside the range of normal numbers.
    let half = i32(n) / 2;
    let rest = i32(n) - half;
    return p * bitcast<f32>(u32(half + 127) << 23u) * bitcast<f32>(u32(rest + 127) << 23u);
}

fn expm1_of(x: f32) -> f32 {
    if (abs(x) < 0.35) {
        var p = 2.4801587e-5;
        p = p * x + 1.9841270e-4;
        p = p * x + 1.3888889e-3;
        p = p * x + 8.3333333e-3;
        p = p * x + 4.1666667e-2;
        p = p * x + 1.6666667e-1;
        p = p * x + 0.5;
        return (p * x) * x + x;
    }
    return exp_of(x) - 1.0;
}

fn log_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
    if ((bits & 0x7fffffffu) == 0u) { return infinity(-1.0); }
    if ((bits >> 31u) != 0u) { return bitcast<f32>(bits | 0x7fc00000u); }
    if (bits == 0x7f800000u) { return x; }
    // Subnormals are scaled by an exact integer normalisation, since hardware may flush them.
    var exponent = i32(bits >> 23u) - 127;
    var mantissa = bits & 0x7fffffu;
    if (exponent == -127) {
        let shift = countLeadingZeros(mantissa) - 8u;
        mantissa = (mantissa << shift) & 0x7fffffu;
        exponent = -126 - i32(shift);
    }
    var m = bitcast<f32>(mantissa | 0x3f800000u);
    if (m > 1.41421356) {
        m *= 0.5;
        exponent += 1;
    }
    // log(m) = 2 atanh(s) with s = (m - 1) / (m + 1).
    let f = m - 1.0;
    let s = f / (m + 1.0);
    let z = s * s;
    let series = z * (0.66666667 + z * (0.4 + z * (0.28571430 + z * (0.22222152 + z * 0.18183571))));
    let e = f32(exponent);
    return e * 0.693359375 + ((f - s * (f - series)) + e * -2.12194440e-4);
}

fn log1p_of(x: f32) -> f32 {
    if (abs(x) < 0.25) {
        let s = x / (2.0 + x);
        let z = s * s;
        return 2.0 * s + s * z * (0.66666667 + z * (0.4 + z * (0.28571429 + z * (0.22222222 + z * 0.18181818))));
    }
    return log_of(1.0 + x);
}
