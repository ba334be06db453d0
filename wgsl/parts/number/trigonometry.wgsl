// sin_of, cos_of, tan_of, sin_cos_of: accurate for every argument, the builtins' bounds are loose beyond pi.
// asin_of, acos_of, atan_of, atan2_of: polynomials, since builtins may be off by 1e-3.
//
// source  Payne and Hanek 1983, "Radian reduction for trigonometric functions", for large arguments
// turns  3

// The remainder of x modulo pi/2, and how many pi/2 were taken off (modulo 4 for large x).
fn turn(x: f32) -> vec2<f32> {
    if (abs(x) > 2000.0) { return turn_large(x); }
    // pi/2 in three parts of few bits (Cody and Waite).
    let n = round(x * 0.63661977);
    var r = x - n * 1.5703125;
    r = r - n * 4.83751297e-4;
    r = r - n * 7.54978995e-8;
    return vec2<f32>(r, n);
}

// x * 2/pi modulo 4 by integers: the mantissa times those 96 bits of 2/pi that matter for x's exponent.
fn turn_large(x: f32) -> vec2<f32> {
    var digits = array<u32, 8>(
        0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu);
    let bits = bitcast<u32>(x);
    let mantissa = (bits & 0x7fffffu) | 0x800000u;
    // The value is mantissa * 2^(exponent - 150); digits before 2^(152 - exponent) give multiples of 4. One word of zeros leads.
    let first = ((bits >> 23u) & 0xffu) - 120u;
    let word = first >> 5u;
    let shift = first & 31u;
    var window: vec3<u32>;
    for (var k = 0u; k < 3u; k++) {
        // Two shifts, since one by 32 is not defined.
        window[k] = (digits[word + k] << shift) | ((digits[word + k + 1u] >> 1u) >> (31u - shift));
    }
    let low = i64_mul_words(mantissa, window.z);
    let middle = i64_add(i64_mul_words(mantissa, window.y), vec2<u32>(low.y, 0u));
    let high = mantissa * window.x + middle.y;
    var quadrant = i32(high >> 30u);
    var fraction = vec2<u32>((middle.x << 2u) | (low.x >> 30u), (high << 2u) | (middle.x >> 30u));
    var sign = select(1.0, -1.0, (bits >> 31u) != 0u);
    let turns = sign;
    if ((fraction.y >> 31u) != 0u) {
        quadrant += 1;
        fraction = i64_neg(fraction);
        sign = -sign;
    }
    var scale = 2.3283064365386963e-10;
    if (fraction.y == 0u) {
        fraction = vec2<u32>(0u, fraction.x);
        scale *= 2.3283064365386963e-10;
    }
    let zeros = min(countLeadingZeros(fraction.y), 31u);
    let top = (fraction.y << zeros) | ((fraction.x >> 1u) >> (31u - zeros));
    let r = f32(top) * (scale * bitcast<f32>((127u - zeros) << 23u)) * 1.57079633;
    return vec2<f32>(sign * r, turns * f32(quadrant));
}

fn sin_small(r: f32) -> f32 {
    let z = r * r;
    return r + r * z * (-1.6666655e-1 + z * (8.3321609e-3 + z * -1.9515296e-4));
}

fn cos_small(r: f32) -> f32 {
    let z = r * r;
    return 1.0 - 0.5 * z + z * z * (4.1666646e-2 + z * (-1.3887316e-3 + z * 2.4433157e-5));
}

fn quadrant(n: f32) -> i32 { return i32(n) & 3; }

fn undefined_of(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) >= 0x7f800000u; }

fn sin_of(x: f32) -> f32 {
    if (undefined_of(x)) { return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u); }
    let t = turn(abs(x));
    let q = quadrant(t.y);
    let v = select(sin_small(t.x), cos_small(t.x), (q & 1) == 1);
    return with_sign(select(v, -v, (q & 2) == 2), x);
}

fn cos_of(x: f32) -> f32 {
    if (undefined_of(x)) { return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u); }
    let t = turn(x);
    let q = quadrant(t.y);
    let v = select(cos_small(t.x), sin_small(t.x), (q & 1) == 1);
    return select(v, -v, q == 1 || q == 2);
}

// (sin, cos) of x.
fn sin_cos_of(x: f32) -> vec2<f32> {
    if (undefined_of(x)) { return vec2<f32>(bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u)); }
    let t = turn(x);
    let q = quadrant(t.y);
    let both = vec2<f32>(sin_small(t.x), cos_small(t.x));
    let v = select(both, both.yx, (q & 1) == 1);
    return select(v, -v, vec2<bool>((q & 2) == 2, q == 1 || q == 2));
}

// (sin, cos) of pi r, of r from -1/2 to 1/2.
fn half_turn(r: f32) -> vec2<f32> {
    let a = abs(r);
    let is_far = a > 0.25;
    let angle = 3.14159265 * select(a, 0.5 - a, is_far);
    let both = vec2<f32>(sin_small(angle), cos_small(angle));
    let v = select(both, both.yx, is_far);
    return vec2<f32>(with_sign(v.x, r), v.y);
}

fn tan_of(x: f32) -> f32 { return sin_of(x) / cos_of(x); }

// Of numbers from 0 to 1.
fn atan_small(t: f32) -> f32 {
    let z = t * t;
    var p = 2.9206911e-3;
    p = p * z - 1.6367923e-2;
    p = p * z + 4.3211853e-2;
    p = p * z - 7.5522136e-2;
    p = p * z + 0.10666004;
    p = p * z - 0.14211055;
    p = p * z + 0.19993773;
    p = p * z - 0.33333153;
    return (p * z) * t + t;
}

fn atan_of(x: f32) -> f32 {
    let a = abs(x);
    let is_large = a > 1.0;
    let v = atan_small(select(a, 1.0 / a, is_large));
    return select(with_sign(select(v, 1.57079633 - v, is_large), x), x, is_nan(x));
}

fn asin_of(x: f32) -> f32 {
    let a = abs(x);
    if (a > 1.0) { return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u); }
    let large = a > 0.5;
    let z = select(a * a, 0.5 * (1.0 - a), large);
    let t = select(a, sqrt(z), large);
    let p = t + t * z * (1.6666752e-1 + z * (7.4953003e-2 + z * (4.5470025e-2 + z * (2.4181311e-2 + z * 4.2163199e-2))));
    return with_sign(select(p, 1.57079633 - 2.0 * p, large), x);
}

fn acos_of(x: f32) -> f32 {
    if (abs(x) > 1.0) { return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u); }
    if (x > 0.5) { return 2.0 * asin_of(sqrt(0.5 * (1.0 - x))); }
    if (x < -0.5) { return 3.14159265 - 2.0 * asin_of(sqrt(0.5 * (1.0 + x))); }
    return 1.57079633 - asin_of(x);
}

fn atan2_of(y: f32, x: f32) -> f32 {
    let y_size = bitcast<u32>(y) & 0x7fffffffu;
    let x_size = bitcast<u32>(x) & 0x7fffffffu;
    let most = max(y_size, x_size);
    let least = min(y_size, x_size);
    var t = bitcast<f32>(least) / bitcast<f32>(most);
    if (most - 0x800000u >= 0x7e000000u) {
        if (most > 0x7f800000u) { return select(x, y, y_size > 0x7f800000u); }
        if (most < 0x800000u) {
            // subnormal numbers are as their bits, and count
            t = f32(least) / f32(max(most, 1u));
        } else {
            // divisors above 2^126 may have a reciprocal of zero
            t = (bitcast<f32>(least) * 0.0625) / (bitcast<f32>(most) * 0.0625);
            t = select(t, 1.0, least == 0x7f800000u);
        }
    }
    let v = atan_small(t);
    let steep = select(v, 1.57079633 - v, y_size > x_size);
    return with_sign(select(steep, 3.14159265 - steep, (bitcast<u32>(x) >> 31u) != 0u), y);
}
