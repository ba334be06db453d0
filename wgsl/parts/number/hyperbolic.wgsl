// tanh_of, sinh_of, cosh_of, asinh_of, acosh_of, atanh_of, sigmoid_of, silu_of, mish_of, softplus_of, logit_of,
// logaddexp_of, log_sum_pair, logaddexp2_of, hypot_of: stable everywhere.

fn tanh_of(x: f32) -> f32 {
    if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) { return x; }
    let a = abs(x);
    if (a > 9.1) { return with_sign(1.0, x); }
    let t = expm1_of(2.0 * a);
    return with_sign(t / (t + 2.0), x);
}

fn sinh_of(x: f32) -> f32 {
    let a = abs(x);
    if (a > 88.0) {
        let h = exp_of(0.5 * a);
        return with_sign((0.5 * h) * h, x);
    }
    let t = expm1_of(a);
    return with_sign(0.5 * (t + t / (t + 1.0)), x);
}

fn cosh_of(x: f32) -> f32 {
    let a = abs(x);
    if (a > 88.0) {
        let h = exp_of(0.5 * a);
        return (0.5 * h) * h;
    }
    let e = exp_of(a);
    return 0.5 * e + 0.5 / e;
}

fn asinh_of(x: f32) -> f32 {
    let a = abs(x);
    if (a > 1e9) { return with_sign(log_of(a) + 0.69314718, x); }
    return with_sign(log1p_of(a + a * a / (1.0 + sqrt(a * a + 1.0))), x);
}

fn acosh_of(x: f32) -> f32 {
    if (x < 1.0) { return not_defined(x); }
    if (x > 1e9) { return log_of(x) + 0.69314718; }
    let t = x - 1.0;
    return log1p_of(t + sqrt(2.0 * t + t * t));
}

fn atanh_of(x: f32) -> f32 {
    if (abs(x) > 1.0) { return not_defined(x); }
    if (abs(x) == 1.0) { return infinity(x); }
    let a = abs(x);
    return with_sign(0.5 * log1p_of(2.0 * a / (1.0 - a)), x);
}

fn sigmoid_of(x: f32) -> f32 {
    let e = exp_of(-abs(x));
    return select(1.0, e, x < 0.0) / (1.0 + e);
}

fn silu_of(x: f32) -> f32 {
    if (x < -80.0) {
        // e^x may be subnormal, and zero to the device, where x e^x is not.
        let h = exp_of(0.5 * x);
        return (x * h) * h;
    }
    return x * sigmoid_of(x);
}

// x tanh(log(1 + e)) with e = exp(x): x e (e + 2) / (e (e + 2) + 2).
fn mish_of(x: f32) -> f32 {
    if (x < -80.0) {
        let h = exp_of(0.5 * x);
        return (x * h) * h;
    }
    let e = exp_of(min(x, 20.0));
    let t = e * (e + 2.0);
    return x * (t / (t + 2.0));
}

fn softplus_of(x: f32) -> f32 {
    return max(x, 0.0) + log1p_of(exp_of(-abs(x)));
}

fn logit_of(x: f32) -> f32 { return log_of(select(x / (1.0 - x), -1.0, abs(x) > 1.0)); }

fn logaddexp_of(a: f32, b: f32) -> f32 {
    if (bitcast<u32>(a) == bitcast<u32>(b) && abs(a) > 3e38) { return a; }
    return nan_max(a, b) + log1p_of(exp_of(-abs(a - b)));
}

// (the largest, the sum of exponentials beside it) of two such pairs; of nothing it is (-inf, 0).
fn log_sum_pair(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let apart = select(exp(max(-abs(a.x - b.x), -104.0)), 1.0, a.x == b.x);
    let total = select(b.y + a.y * apart, a.y + b.y * apart, a.x > b.x);
    return vec2<f32>(nan_max(a.x, b.x), total);
}

fn logaddexp2_of(a: f32, b: f32) -> f32 {
    if (bitcast<u32>(a) == bitcast<u32>(b) && abs(a) > 3e38) { return a; }
    return nan_max(a, b) + 1.44269504 * log1p_of(exp2_of(-abs(a - b)));
}

fn hypot_of(a: f32, b: f32) -> f32 {
    let high = max(bitcast<u32>(a) & 0x7fffffffu, bitcast<u32>(b) & 0x7fffffffu);
    let low = min(bitcast<u32>(a) & 0x7fffffffu, bitcast<u32>(b) & 0x7fffffffu);
    if (high >= 0x7f800000u) { return bitcast<f32>(select(high, 0x7f800000u, low == 0x7f800000u || high == 0x7f800000u)); }
    if (high == 0u) { return 0.0; }
    let ratio = ratio_of(bitcast<f32>(low), bitcast<f32>(high));
    return bitcast<f32>(high) * sqrt(1.0 + ratio * ratio);
}
