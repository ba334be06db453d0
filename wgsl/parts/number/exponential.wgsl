// exp_of, exp2_of, expm1_of, log_of, log2_of, log10_of, log1p_of, xlogy_of, xlog1py_of
//
// With PyTorch's results at infinities, zero and NaN, and accurate near zero.

fn infinity(sign: f32) -> f32 { return bitcast<f32>(0x7f800000u | (bitcast<u32>(sign) & 0x80000000u)); }

// v with the sign turned where x is negative, -0 included: odd functions are computed of |x|.
fn with_sign(v: f32, x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) ^ (bitcast<u32>(x) & 0x80000000u)); }

fn exp_of(x: f32) -> f32 {
    // exp(x) = 2^n exp(r) with |r| <= ln 2 / 2, ln 2 in two parts.
    let n = round(x * 1.44269504);
    let p = exp_small((x - n * 0.693359375) - n * -2.12194440e-4);
    let bits = bitcast<u32>(x);
    // to 86.5 the result is a normal number
    if ((bits & 0x7fffffffu) < 0x42ad0000u) { return lifted_by(p, n); }
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
    if (x > 88.72284) { return infinity(1.0); }
    if (x < -103.97208) { return 0.0; }
    return scaled(p, i32(n));
}

// p * 2^n where that is a normal number, of a whole n: added to 1.5 * 2^23 it is the last bits.
fn lifted_by(p: f32, n: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(p) + (bitcast<u32>(n + 12582912.0) << 23u));
}

fn exp2_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
    if (x >= 128.0) { return infinity(1.0); }
    if (x < -150.0) { return 0.0; }
    let n = round(x);
    return scaled(exp_small((x - n) * 0.69314718), i32(n));
}

// Taylor's polynomial to degree 7, for |r| <= ln 2 / 2.
fn exp_small(r: f32) -> f32 {
    var p = 1.9841270e-4;
    p = p * r + 1.3888889e-3;
    p = p * r + 8.3333333e-3;
    p = p * r + 4.1666667e-2;
    p = p * r + 1.6666667e-1;
    p = p * r + 0.5;
    return (p * r) * r + r + 1.0;
}

// p * 2^n, in two factors, since 2^n itself may lie outside the range of normal numbers.
fn scaled(p: f32, n: i32) -> f32 {
    let half = n >> 1u;
    let rest = n - half;
    return p * bitcast<f32>(u32(half + 127) << 23u) * bitcast<f32>(u32(rest + 127) << 23u);
}

fn expm1_of(x: f32) -> f32 {
    if (x == 0.0) { return x; }
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
    if (bits - 1u >= 0x7f7fffffu) { return log_special(x); }
    let t = split_power(bits);
    return t.y * 0.693359375 + (log_mantissa(t.x) + t.y * -2.12194440e-4);
}

fn log2_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits - 1u >= 0x7f7fffffu) { return log_special(x); }
    let t = split_power(bits);
    return t.y + log_mantissa(t.x) * 1.44269504;
}

fn log10_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits - 1u >= 0x7f7fffffu) { return log_special(x); }
    let t = split_power(bits);
    // log10(e) and log10(2) in two parts each.
    let m = log_mantissa(t.x);
    return t.y * 0.30078125 + (m * 0.43359375 + (t.y * 2.48745664e-4 + m * 7.00731903e-4));
}

// The logarithm, to any base, of what is not positive and finite.
fn log_special(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
    if ((bits & 0x7fffffffu) == 0u) { return infinity(-1.0); }
    return bitcast<f32>(select(bits, bits | 0x7fc00000u, (bits >> 31u) != 0u));
}

// (m, e) with x = m * 2^e and m from 0.7 to 1.42, of a positive finite x.
fn split_power(bits: u32) -> vec2<f32> {
    // Subnormals are scaled by an exact integer normalisation, since hardware may flush them.
    var exponent = i32(bits >> 23u) - 127;
    var mantissa = bits & 0x7fffffu;
    if (exponent == -127) {
        let shift = countLeadingZeros(mantissa) - 8u;
        mantissa = (mantissa << shift) & 0x7fffffu;
        exponent = -126 - i32(shift);
    }
    let m = bitcast<f32>(mantissa | 0x3f800000u);
    return select(vec2<f32>(m, f32(exponent)), vec2<f32>(0.5 * m, f32(exponent + 1)), m > 1.41421356);
}

fn log_mantissa(m: f32) -> f32 { return log_beside_1(m - 1.0); }

// log(1 + f) = 2 atanh(s) with s = f / (2 + f), of f from -0.3 to 0.42.
fn log_beside_1(f: f32) -> f32 {
    let s = f / (f + 2.0);
    let z = s * s;
    let series = z * (0.66666667 + z * (0.4 + z * (0.28571430 + z * (0.22222152 + z * 0.18183571))));
    return f - s * (f - series);
}

fn log1p_of(x: f32) -> f32 {
    let bits = bitcast<u32>(1.0 + x);
    if (bits - 1u >= 0x7f7fffffu) { return log_special(1.0 + x); }
    // near 0 x is what the mantissa has above 1, and 1 + x has lost of it; one series for both, so that no lane
    // waits for another
    let t = split_power(bits);
    let is_near = abs(x) < 0.25;
    let near = log_beside_1(select(t.x - 1.0, x, is_near));
    return select(t.y * 0.693359375 + (near + t.y * -2.12194440e-4), near, is_near);
}

fn xlogy_of(x: f32, y: f32) -> f32 {
    return select(x * log_of(y), select(0.0, y, is_nan(y)), x == 0.0 && !is_nan(x));
}

fn xlog1py_of(x: f32, y: f32) -> f32 {
    return select(x * log1p_of(y), select(0.0, y, is_nan(y)), x == 0.0 && !is_nan(x));
}
