// lgamma_of, digamma_of, trigamma_of, zeta_of(s, a), polygamma_of(n, x), igamma_of(a, x), igammac_of(a, x)
//
// error   against float64, in units of the larger of 1 and the value: lgamma 4e-7, digamma 8e-7, zeta 6e-6,
//         igamma and igammac 4e-6
// turns   at most 128
// source  DLMF 5.7.3, 5.11.1, 5.11.2 and reflections 5.5.3, 5.5.4; zeta by Euler and Maclaurin's sum, 2.10.1;
//         igamma by its series 8.7.1 and fraction 8.9.2, for large a near x by Temme's expansion, 8.12.3

fn lgamma_of(x: f32) -> f32 {
    let a = abs(x);
    if ((bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u) { return a; }
    let found = lgamma_positive(a);
    if (x > 0.0 || a < 1e-6) { return found; }
    if (a == floor(a)) { return infinity(1.0); }
    return 1.14472989 - log_of(a * abs(half_turn(a - round(a)).x)) - found;
}

fn lgamma_positive(x: f32) -> f32 {
    if (x >= 8.0) {
        let z = 1.0 / (x * x);
        let series = (0.0833333333 - z * (0.00277777778 - z * 7.93650794e-4)) / x;
        return (x - 0.5) * (log_of(x) - 1.0) + (0.418938533 + series);
    }
    var y = x;
    var above = 1.0;
    for (; y > 2.5; y -= 1.0) { above *= y - 1.0; }
    var below = 1.0;
    if (y < 1.5) {
        below = select(y, y * (y + 1.0), y < 0.5);
        y += select(1.0, 2.0, y < 0.5);
    }
    let z = y - 2.0;
    var p = 4.37486679e-06 * z - 9.43948828e-06;
    p = horner(p, z, vec4<f32>(2.05072128e-05, -4.49262367e-05, 9.94575128e-05, -0.000223154758));
    p = horner(p, z, vec4<f32>(0.000509669525, -0.00119275391, 0.00289051033, -0.00738555103));
    p = horner(p, z, vec4<f32>(0.0205808084, -0.0673523011, 0.322467033, 0.422784335));
    // one of the two is 1
    let factor = log_of(above * below);
    return z * p + select(-factor, factor, x > 2.0);
}

fn digamma_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (x == 0.0) { return infinity(-x); }
    if (x < 0.0 && (x == floor(x) || x < -3.4e38)) { return not_defined(x); }
    var y = select(x, 1.0 - x, x < 0.0);
    var sum = 0.0;
    if (x < 0.0) {
        let turned = half_turn(x - round(x));
        sum = -3.14159265 * turned.y / turned.x;
    }
    if (y < 4.0) {
        sum -= four_reciprocals(y);
        y += 4.0;
    }
    if (y < 8.0) {
        sum -= four_reciprocals(y);
        y += 4.0;
    }
    let w = 1.0 / y;
    let z = w * w;
    let series = z * (0.0833333333 - z * (0.00833333333 - z * (0.00396825397 - z * 0.00416666667)));
    return sum + (log_of(y) - 0.5 * w - series);
}

// 1 / y + 1 / (y + 1) + 1 / (y + 2) + 1 / (y + 3), by one division: the derivative of the denominator over it.
fn four_reciprocals(y: f32) -> f32 {
    let u = y * (y + 3.0);
    return (2.0 * y + 3.0) * (2.0 * u + 2.0) / (u * (u + 2.0));
}

fn trigamma_of(x: f32) -> f32 {
    if (is_nan(x) || x < -3.4e38) { return not_defined(x); }
    var y = select(x, 1.0 - x, x < 0.5);
    var sum = 0.0;
    for (; y < 8.0; y += 1.0) { sum += 1.0 / (y * y); }
    let z = 1.0 / (y * y);
    let series = (1.0 + z * (0.166666667 - z * (0.0333333333 - z * 0.0238095238))) / y;
    sum += series + 0.5 * z;
    if (x >= 0.5) { return sum; }
    let s = 3.14159265 / half_turn(x - round(x)).x;
    return select(s * s - sum, infinity(1.0), x == round(x));
}

fn polygamma_of(n: f32, x: f32) -> f32 {
    if (n == 0.0) { return digamma_of(x); }
    if (n == 1.0) { return trigamma_of(x); }
    var factorial = select(infinity(1.0), 1.0, n < 35.0);
    for (var k = 2.0; k <= min(n, 34.0); k += 1.0) { factorial *= k; }
    return select(-factorial, factorial, n % 2.0 == 1.0) * zeta_of(n + 1.0, x);
}

fn zeta_of(s: f32, a: f32) -> f32 {
    if (is_nan(s) || is_nan(a) || s < 1.0 || a > 3.4e38) { return not_defined(s); }
    if (s == 1.0 || (a <= 0.0 && a == floor(a))) { return infinity(1.0); }
    if (a <= 0.0 && s != floor(s)) { return not_defined(s); }
    var q = a;
    var sum = 0.0;
    if (a < -10.0) {
        // All terms but those beside 0 at once.
        let part = a - floor(a);
        sum = zeta_tail(s, 11.0 - part) - zeta_tail(s, 1.0 - a);
        sum = select(sum, -sum, s % 2.0 == 1.0);
        q = part - 10.0;
    }
    for (; q < clamp(s, 9.0, 64.0); q += 1.0) { sum += power(q, -s); }
    return sum + zeta_tail(s, q);
}

fn zeta_tail(s: f32, q: f32) -> f32 {
    // q^(-s) may be subnormal where the sum is not.
    let b = power(q, 1.0 - s);
    let z = 1.0 / (q * q);
    let c = (s + 3.0) * (s + 4.0) * z * 3.30687831e-5;
    let d = (s + 1.0) * (s + 2.0) * z * (0.00138888889 - c);
    return b * (1.0 / (s - 1.0) + 0.5 / q + s * z * (0.0833333333 - d));
}

// log(1 + m) - m
fn log1p_rest(m: f32) -> f32 {
    if (abs(m) > 0.5) { return log_of(1.0 + m) - m; }
    let s = m / (2.0 + m);
    let z = s * s;
    return s * (2.0 * z * (0.333333333 + z * (0.2 + z * (0.142857143 + z * (0.111111111 + z * 0.0909090909)))) - m);
}

// x^a exp(-x) / gamma(a + 1)
fn gamma_density(a: f32, x: f32) -> f32 {
    if (a < 20.0) { return exp_of(a * log_of(x) - x - lgamma_of(a + 1.0)); }
    let size = 1.0 + (0.0833333333 + 0.00347222222 / a) / a;
    return exp_of(a * log1p_rest((x - a) / a)) * 0.398942280 / (sqrt(a) * size);
}

fn igamma_of(a: f32, x: f32) -> f32 { return incomplete_gamma(a, x, false); }

fn igammac_of(a: f32, x: f32) -> f32 { return incomplete_gamma(a, x, true); }

fn incomplete_gamma(a: f32, x: f32, is_upper: bool) -> f32 {
    if (is_nan(a) || is_nan(x) || a < 0.0 || x < 0.0) { return not_defined(a); }
    if ((a == 0.0 && x == 0.0) || (a > 3.4e38 && x > 3.4e38)) { return not_defined(a); }
    if (x == 0.0 || a > 3.4e38) { return select(0.0, 1.0, is_upper); }
    if (a == 0.0 || x > 3.4e38) { return select(1.0, 0.0, is_upper); }
    if (a > 20.0 && abs(x - a) < 0.3 * a) { return temme(a, x, select(-1.0, 1.0, is_upper)); }
    if (x < a + 1.0) {
        var term = 1.0;
        var sum = 1.0;
        for (var n = 1.0; n < 128.0 && term > 1e-8 * sum; n += 1.0) {
            term *= x / (a + n);
            sum += term;
        }
        let p = gamma_density(a, x) * sum;
        return select(p, 1.0 - p, is_upper);
    }
    // The fraction from its end.
    var b = x + 129.0 - a;
    for (var n = 64.0; n > 0.0; n -= 1.0) { b = x + 2.0 * n - 1.0 - a + n * (a - n) / b; }
    let q = gamma_density(a, x) * a / b;
    return select(1.0 - q, q, is_upper);
}

// The share above x where sign is 1, below it where it is -1.
fn temme(a: f32, x: f32, sign: f32) -> f32 {
    let m = (x - a) / a;
    let half = -log1p_rest(m);
    let t = with_sign(sqrt(2.0 * half), m);
    var c = -1.85406221e-6 * t - 2.18544851e-6;
    c = horner(c, t, vec4<f32>(3.91926318e-5, -1.78755144e-4, 3.52733686e-4, 0.00115740741));
    c = ((c * t - 0.0148148148) * t + 0.0833333333) * t - 0.333333333;
    let d = horner(2.05761317e-4, t, vec4<f32>(-9.90226337e-4, 0.00264550265, -0.00347222222, -0.00185185185));
    let e = (7.71604938e-4 * t - 0.00268132716) * t + 0.0041335979;
    let rest = exp_of(-a * half) * 0.398942280 / sqrt(a) * (c + (d + e / a) / a);
    return 0.5 * erfc_of(sign * t * sqrt(0.5 * a)) + sign * rest;
}
