// Functions of complex numbers that are made of exponentials, logarithms and roots
//
// complex_exp2, complex_expm1, complex_log1p, complex_sinh, complex_cosh, complex_tanh, complex_tan,
// complex_asinh, complex_acosh, complex_atanh, complex_asin, complex_acos, complex_atan, complex_sinc,
// complex_sigmoid, complex_silu
// complex_log_sum(a, b)  log(exp(a) + exp(b)), whose imaginary part stays near that of the larger one
//
// source  W. Kahan, Branch cuts for complex elementary functions, 1987

fn complex_exp2(a: vec2<f32>) -> vec2<f32> { return complex_exp(0.69314718 * a); }

fn complex_expm1(a: vec2<f32>) -> vec2<f32> {
    let half = sin_of(0.5 * a.y);
    return vec2<f32>(expm1_of(a.x) * cos_of(a.y) - 2.0 * half * half, exp_of(a.x) * sin_of(a.y));
}

fn complex_log1p(a: vec2<f32>) -> vec2<f32> {
    let angle = atan2_of(a.y, 1.0 + a.x);
    if (abs(a.x) < 0.5 && abs(a.y) < 0.5) { return vec2<f32>(0.5 * log1p_of(a.x * (2.0 + a.x) + a.y * a.y), angle); }
    return vec2<f32>(log_of(hypot_of(1.0 + a.x, a.y)), angle);
}

fn complex_sinh(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(sinh_of(a.x) * cos_of(a.y), cosh_of(a.x) * sin_of(a.y)); }

fn complex_cosh(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(cosh_of(a.x) * cos_of(a.y), sinh_of(a.x) * sin_of(a.y)); }

fn complex_tanh(a: vec2<f32>) -> vec2<f32> {
    let cosine = cos_of(a.y);
    let sine = sin_of(a.y);
    if (abs(a.x) > 9.1) { return vec2<f32>(with_sign(1.0, a.x), 4.0 * sine * cosine * exp_of(-2.0 * abs(a.x))); }
    let slope = sinh_of(a.x);
    let size = cosine * cosine + slope * slope;
    return vec2<f32>(slope * cosh_of(a.x), sine * cosine) / size;
}

// -i f(i a) of a pair of parts that is f(i a)
fn complex_turned(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.y, -a.x); }

fn complex_tan(a: vec2<f32>) -> vec2<f32> { return complex_turned(complex_tanh(vec2<f32>(-a.y, a.x))); }

fn complex_asinh(a: vec2<f32>) -> vec2<f32> {
    let less = complex_sqrt(vec2<f32>(1.0 + a.y, -a.x));
    let more = complex_sqrt(vec2<f32>(1.0 - a.y, a.x));
    return vec2<f32>(asinh_of(less.x * more.y - more.x * less.y), atan2_of(a.y, less.x * more.x - less.y * more.y));
}

fn complex_asin(a: vec2<f32>) -> vec2<f32> { return complex_turned(complex_asinh(vec2<f32>(-a.y, a.x))); }

fn complex_acos(a: vec2<f32>) -> vec2<f32> {
    let less = complex_sqrt(vec2<f32>(1.0 - a.x, -a.y));
    let more = complex_sqrt(vec2<f32>(1.0 + a.x, a.y));
    return vec2<f32>(2.0 * atan2_of(less.x, more.x), asinh_of(more.x * less.y - more.y * less.x));
}

fn complex_acosh(a: vec2<f32>) -> vec2<f32> {
    let less = complex_sqrt(vec2<f32>(a.x - 1.0, a.y));
    let more = complex_sqrt(vec2<f32>(a.x + 1.0, a.y));
    return vec2<f32>(asinh_of(less.x * more.x + less.y * more.y), 2.0 * atan2_of(less.y, more.x));
}

fn complex_atanh(a: vec2<f32>) -> vec2<f32> {
    if (abs(a.x) > 1e9 || abs(a.y) > 1e9) {
        let half = hypot_of(0.5 * a.x, 0.5 * a.y);
        return vec2<f32>(0.25 * a.x / half / half, with_sign(1.57079633, a.y));
    }
    let x = abs(a.x);
    let far = (1.0 - x) * (1.0 - x) + a.y * a.y;
    let size = 0.25 * log1p_of(4.0 * x / far);
    return vec2<f32>(with_sign(size, a.x), 0.5 * atan2_of(2.0 * a.y, (1.0 - x) * (1.0 + x) - a.y * a.y));
}

fn complex_atan(a: vec2<f32>) -> vec2<f32> { return complex_turned(complex_atanh(vec2<f32>(-a.y, a.x))); }

fn complex_sinc(a: vec2<f32>) -> vec2<f32> {
    if (all(a == vec2<f32>(0.0))) { return vec2<f32>(1.0, 0.0); }
    let angle = 3.14159265 * a;
    return complex_div(complex_sin(angle), angle);
}

fn complex_sigmoid(a: vec2<f32>) -> vec2<f32> {
    let e = complex_exp(select(-a, a, a.x < 0.0));
    let whole = vec2<f32>(1.0 + e.x, e.y);
    return complex_div(select(vec2<f32>(1.0, 0.0), e, a.x < 0.0), whole);
}

fn complex_silu(a: vec2<f32>) -> vec2<f32> { return complex_mul(a, complex_sigmoid(a)); }

fn complex_log_sum(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    if (is_nan(a.x) || is_nan(a.y) || is_nan(b.x) || is_nan(b.y)) { return not_defined(1.0) * vec2<f32>(1.0); }
    let low = select(b, a, a.x < b.x);
    let high = select(a, b, a.x < b.x);
    if (abs(high.x) > 3.4028234e38 && low.x == high.x) {
        return select(complex_log(complex_exp(a) + complex_exp(b)), high, high.x < 0.0);
    }
    return complex_log1p(complex_exp(low - high)) + high;
}
