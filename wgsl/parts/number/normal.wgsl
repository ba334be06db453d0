// erfinv_of, erfcx_of, ndtr_of, ndtri_of, log_ndtr_of, entr_of
//
// error   against float64: 3e-7 of the value, of log_ndtr 5e-7 in units of the larger of 1 and the value
// source  erfinv: polynomials of w = -log(1 - x^2), as Giles 2010, "Approximating the erfinv function", has it,
//         with coefficients by mpmath (relative error below 2e-7); erfcx: that of error_function

fn erfinv_of(x: f32) -> f32 {
    if ((bitcast<u32>(x) & 0x7fffffffu) >= 0x3f800000u) {
        return select(not_defined(x), infinity(x), abs(x) == 1.0);
    }
    return quantile(x, -log_of((1.0 - x) * (1.0 + x)));
}

// erfinv(x), where 1 - x^2 = exp(-w), which x does not say near 1.
fn quantile(x: f32, w: f32) -> f32 {
    if (w < 5.0) { return x * erfinv_near(0.4 * w - 1.0); }
    let s = sqrt(w);
    return with_sign(select(erfinv_beyond((s - 7.65) / 2.65), erfinv_far((s - 3.6) / 1.4), s < 5.0), x);
}

fn ndtri_of(p: f32) -> f32 {
    if (is_nan(p) || p < 0.0 || p > 1.0) { return not_defined(p); }
    if (p == 0.0 || p == 1.0) { return infinity(p - 0.5); }
    let q = min(p, 1.0 - p);
    return with_sign(1.41421356 * quantile(1.0 - 2.0 * q, -log_of(4.0 * q) - log1p_of(-q)), p - 0.5);
}

fn erfcx_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (abs(x) < 0.5) { return exp_of(x * x) * (1.0 - erf_series(x)); }
    let scaled = erfcx_positive(abs(x));
    if (x > 0.0) { return scaled; }
    if (x < -9.5) { return infinity(1.0); }
    let high = bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
    return 2.0 * exp_of(high * high) * exp_of((x - high) * (x + high)) - scaled;
}

fn ndtr_of(x: f32) -> f32 { return 0.5 * erfc_of(-0.707106781 * x); }

fn log_ndtr_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    // of a negative x the logarithm of t exp(s) / 2, of another that of 1 less it: one way for both, so that no
    // lane waits for another. Where t is lost beside 1, s is all that counts.
    let t = 1.0 / (1.0 + 0.353553391 * abs(x));
    let s = erfc_exponent(t) - 0.5 * x * x;
    let is_below = x < 0.0;
    let apart = select(-0.5 * t * exp_of(s), max(0.5 * t - 1.0, -0.99999994), is_below);
    return log1p_of(apart) - select(0.0, -s, is_below);
}

fn entr_of(x: f32) -> f32 {
    if (x > 0.0 || is_nan(x)) { return -x * log_of(x); }
    return select(infinity(-1.0), 0.0, x == 0.0);
}

fn erfinv_near(t: f32) -> f32 {
    var p = -3.40725936e-05 * t + 3.56078601e-05;
    p = horner(p, t, vec4<f32>(0.0002857247, -0.000845699528, -0.00048558786, 0.0085292729));
    p = horner(p, t, vec4<f32>(-0.0195738499, -0.0261087055, 0.616600698, 1.50140936));
    return p;
}

fn erfinv_far(t: f32) -> f32 {
    var p = -7.73770737e-05;
    p = horner(p, t, vec4<f32>(6.58980168e-05, 0.000287232471, -0.000892854299, 0.00201381915));
    p = horner(p, t, vec4<f32>(-0.00407597848, 0.00514577725, 1.4111904, 3.43624936));
    return p;
}

fn erfinv_beyond(t: f32) -> f32 {
    var p = (6.93906758e-05 * t - 0.000146983346) * t + 0.000106427429;
    p = horner(p, t, vec4<f32>(0.000334286883, -0.00343115657, 2.67104454, 7.52439285));
    return p;
}
