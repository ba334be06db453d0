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
    return log_sum(log_parts(bits));
}

fn log2_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits - 1u >= 0x7f7fffffu) { return log_special(x); }
    let t = log_parts(bits);
    return log_beside_1(t.x) * 1.44269504 - t.y * 1.1920929e-07;
}

fn log10_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits - 1u >= 0x7f7fffffu) { return log_special(x); }
    let t = log_parts(bits);
    // log10(e) and log10(2) in two parts each.
    let m = log_beside_1(t.x);
    let rest = m * 7.00731903e-04 - t.y * 2.96527939e-11;
    return (m * 0.43359375 + rest) - t.y * 3.58559191e-08;
}

// The logarithm, to any base, of what is not positive and finite.
fn log_special(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
    if ((bits & 0x7fffffffu) == 0u) { return infinity(-1.0); }
    return bitcast<f32>(select(bits, bits | 0x7fc00000u, (bits >> 31u) != 0u));
}

// (m - 1, -2^23 e) with x = m * 2^e and m from 0.707 to 1.414, of the bits of a positive finite x.
fn log_parts(bits: u32) -> vec2<f32> {
    var normal = bits;
    var lift = 0u;
    if (bits < 0x800000u) {
        // as an integer it is 2^149 times as large: hardware may flush subnormal floats
        normal = bitcast<u32>(f32(bits));
        lift = 149u << 23u;
    }
    let power = (normal - 0x3f3504f3u) & 0xff800000u;
    return vec2<f32>(bitcast<f32>(normal - power) - 1.0, f32(bitcast<i32>(lift - power)));
}

// log(1 + f) of f from -0.293 to 0.415, to 4e-9 of it; a division would take as long as half of it.
fn log_beside_1(f: f32) -> f32 {
    var p = -0.0762185594 * f + 0.12904494;
    p = horner(p, f, vec4<f32>(-0.13242985, 0.141818142, -0.166090814, 0.200019746));
    p = (p * f - 0.250015831) * f + 0.333333257;
    return (p * f - 0.499999883) * (f * f) + f;
}

// The logarithm of what parts are of. ln 2 / 2^23 in two parts, of which the first has few bits; -0 stays -0.
fn log_sum(parts: vec2<f32>) -> f32 {
    return (log_beside_1(parts.x) - parts.y * 1.10842396e-11) - parts.y * 8.26184987e-08;
}

fn log1p_of(x: f32) -> f32 {
    let bits = bitcast<u32>(1.0 + x);
    if (bits - 1u >= 0x7f7fffffu) { return log_special(1.0 + x); }
    // the power of two is that of 1 + x, and what is left of it comes from x, for 1 + x has lost some of that
    let power = (bits - 0x3f3504f3u) & 0xff800000u;
    let unit = bitcast<f32>(0x40800000u - power);
    let f = bitcast<f32>(bitcast<u32>(x) - power) - (1.0 - 0.25 * unit);
    return log_sum(vec2<f32>(f, f32(bitcast<i32>(0u - power))));
}

fn xlogy_of(x: f32, y: f32) -> f32 {
    return select(x * log_of(y), select(0.0, y, is_nan(y)), x == 0.0 && !is_nan(x));
}

fn xlog1py_of(x: f32, y: f32) -> f32 {
    return select(x * log1p_of(y), select(0.0, y, is_nan(y)), x == 0.0 && !is_nan(x));
}
