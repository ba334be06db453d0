// Complex numbers as vec2<f32>, the real part first.
//
// complex_mul(a, b)    the product
// complex_times(a, b)  the product, b itself where a is 1: infinite parts stay as they are
// complex_div(a, b)    the quotient, by the larger part of b: no square leaves the range
// complex_exp, complex_log, complex_sqrt, complex_power, complex_sgn, complex_sin, complex_cos
// complex_from_c128, complex_to_c128  parts of 64 bits as floats, and floats as such
//
// source  R. L. Smith, Algorithm 116: Complex division, 1962

fn complex_mul(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

fn complex_times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return select(complex_mul(a, b), b, a.x == 1.0 && a.y == 0.0); }

fn complex_div(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    if (abs(b.x) >= abs(b.y)) {
        let ratio = select(b.y / b.x, 0.0, b.y == 0.0);
        let size = b.x + b.y * ratio;
        return vec2<f32>((a.x + a.y * ratio) / size, (a.y - a.x * ratio) / size);
    }
    let ratio = b.x / b.y;
    let size = b.x * ratio + b.y;
    return vec2<f32>((a.x * ratio + a.y) / size, (a.y * ratio - a.x) / size);
}

fn complex_exp(a: vec2<f32>) -> vec2<f32> {
    let size = exp_of(a.x);
    if (a.y == 0.0) { return vec2<f32>(size, a.y); }
    return vec2<f32>(size * cos_of(a.y), size * sin_of(a.y));
}

fn complex_sin(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(sin_of(a.x) * cosh_of(a.y), cos_of(a.x) * sinh_of(a.y)); }

fn complex_cos(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(cos_of(a.x) * cosh_of(a.y), -sin_of(a.x) * sinh_of(a.y)); }

fn complex_log(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(log_of(hypot_of(a.x, a.y)), atan2_of(a.y, a.x)); }

fn complex_sqrt(a: vec2<f32>) -> vec2<f32> {
    let size = hypot_of(a.x, a.y);
    if (size == 0.0) { return vec2<f32>(0.0, a.y); }
    let root = sqrt(0.5 * abs(a.x) + 0.5 * size);
    let other = 0.5 * (a.y / root);
    if (a.x >= 0.0) { return vec2<f32>(root, other); }
    return vec2<f32>(abs(other), with_sign(root, a.y));
}

fn complex_power(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    if (all(b == vec2<f32>(0.0))) { return vec2<f32>(1.0, 0.0); }
    if (all(b == vec2<f32>(1.0, 0.0))) { return a; }
    if (all(b == vec2<f32>(2.0, 0.0))) { return complex_mul(a, a); }
    if (all(a == vec2<f32>(0.0)) && b.x > 0.0) { return a; }
    return complex_exp(complex_mul(b, complex_log(a)));
}

fn complex_sgn(a: vec2<f32>) -> vec2<f32> {
    let size = hypot_of(a.x, a.y);
    return select(a / size, vec2<f32>(0.0), size == 0.0);
}

fn complex_from_c128(bits: vec4<u32>) -> vec2<f32> { return vec2<f32>(float_from_f64(bits.xy), float_from_f64(bits.zw)); }

fn complex_to_c128(a: vec2<f32>) -> vec4<u32> { return vec4<u32>(float_to_f64(a.x), float_to_f64(a.y)); }
