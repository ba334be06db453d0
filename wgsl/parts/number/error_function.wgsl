// erf_of(x), erfc_of(x), which has one way for all numbers and is off by 5e-7 of the value at most
// erfcx_positive(a) is exp(a^2) erfc(a) of a from 0.5 on
//
// source  erf below 1: Maclaurin series, DLMF 7.6.1; elsewhere 1 - erfc by the Chebyshev fit of Press et al.,
//         "Numerical Recipes", section 6.2 (relative error below 1.2e-7)

// The logarithm of exp(a^2) erfc(a) / t with t = 1 / (1 + a / 2).
fn erfc_exponent(t: f32) -> f32 {
    var p = 0.17087277;
    p = p * t - 0.82215223;
    p = p * t + 1.48851587;
    p = p * t - 1.13520398;
    p = p * t + 0.27886807;
    p = p * t - 0.18628806;
    p = p * t + 0.09678418;
    p = p * t + 0.37409196;
    p = p * t + 1.00002368;
    return p * t - 1.26551223;
}

fn erfcx_positive(a: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.5 * a);
    return t * exp_of(erfc_exponent(t));
}

fn erfc_positive(a: f32) -> f32 {
    if (a > 10.06) { return 0.0; }
    let t = 1.0 / (1.0 + 0.5 * a);
    // a^2 = high^2 + low: high^2 is exact, and so is what is left of it and a multiple of ln 2, so that
    // the large exponent loses nothing.
    let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let small = erfc_exponent(t) - (a - high) * (a + high);
    let n = round((small - high * high) * 1.44269504);
    let r = ((-high * high - n * 0.693359375) - n * -2.12194440e-4) + small;
    // t lies between 1/6 and 1, and n is 0 at most
    if (n > -120.0) { return t * lifted_by(exp_small(r), n); }
    return scaled(t * exp_small(r), i32(n));
}

fn erf_of(x: f32) -> f32 {
    if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) { return x; }
    let a = abs(x);
    if (a < 1.0) {
        return erf_series(x);
    }
    return with_sign(1.0 - erfc_positive(a), x);
}

fn erf_series(x: f32) -> f32 {
    // 2/sqrt(pi) * sum (-1)^n x^(2n+1) / (n! (2n+1)), to n = 10.
    let z = x * x;
    var p = 1.3122532963802805e-8;
    p = p * z - 1.4503852223150468e-7;
    p = p * z + 1.4589169000933706e-6;
    p = p * z - 1.3227513227513228e-5;
    p = p * z + 1.0683760683760684e-4;
    p = p * z - 7.5757575757575758e-4;
    p = p * z + 4.6296296296296296e-3;
    p = p * z - 2.3809523809523808e-2;
    p = p * z + 0.1;
    p = p * z - 0.33333333333333333;
    p = p * z + 1.0;
    return 1.1283791670955126 * x * p;
}

fn erfc_of(x: f32) -> f32 {
    let v = erfc_positive(abs(x));
    return select(v, 2.0 - v, x < 0.0);
}
