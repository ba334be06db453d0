// power(a, b)      a^b to about an ulp, with IEEE's results for zero, negative, infinite arguments and NaN
// power_of_number(a, b)  the same for a b that is a number: half of one is a root, as in PyTorch
// power_i32, power_u32  integer powers by squaring; negative exponents of integers give 0 or a unit
//
// |a|^b is 2^(b log2 |a|), of which 2^-30 must be known. No sum of floats is corrected by its rounding error,
// which compilers may take for zero: pieces are cut by their bits and multiplied exactly, or added as integers.
//
// turns  at most 32 for integers, none for floats

fn power(a: f32, b: f32) -> f32 {
    let a_bits = bitcast<u32>(a);
    let b_bits = bitcast<u32>(b);
    let a_size = a_bits & 0x7fffffffu;
    let b_size = b_bits & 0x7fffffffu;
    // a positive normal number to a fraction is no case of those below, but for the root
    if (a_bits - 0x800000u < 0x7f000000u && b_size < 0x4b000000u && b != trunc(b) && b_bits != 0x3f000000u) {
        return power_of_size(a_bits, b);
    }
    if (b_size == 0u || a_bits == 0x3f800000u) { return 1.0; }
    if (is_nan(a)) { return a; }
    if (is_nan(b)) { return b; }
    let is_negative = (a_bits >> 31u) == 1u;
    let falls = (b_bits >> 31u) == 1u;
    if (b_size == 0x7f800000u) {
        if (a_size == 0x3f800000u) { return 1.0; }
        return select(0.0, infinity(1.0), (a_size > 0x3f800000u) != falls);
    }
    if (b == 1.0) { return a; }
    if (b == 2.0) { return a * a; }
    if (b == 0.5 && a_size != 0u && !is_negative) { return sqrt(a); }
    if (b == -1.0) { return 1.0 / a; }
    // from 2^24 on all are even
    let whole = b_size >= 0x4b800000u || b == trunc(b);
    let odd = whole && b_size < 0x4b800000u && (i32(b) & 1) == 1;
    if (a_size == 0u || a_size == 0x7f800000u) {
        let grows = (a_size != 0u) != falls;
        let size = select(0.0, infinity(1.0), grows);
        return select(size, with_sign(size, a), odd);
    }
    if (is_negative && !whole) { return bitcast<f32>(0x7fc00000u | (a_bits & 0x80000000u)); }
    if (whole && b_size <= 0x41b80000u) {
        // up to 23: products of whole numbers are exact, and so are few factors but for an ulp
        let n = u32(abs(b));
        let a_2 = a * a;
        let a_4 = a_2 * a_2;
        let a_8 = a_4 * a_4;
        var result = select(1.0, a, (n & 1u) != 0u);
        result *= select(1.0, a_2, (n & 2u) != 0u);
        result *= select(1.0, a_4, (n & 4u) != 0u);
        result *= select(1.0, a_8, (n & 8u) != 0u);
        result *= select(1.0, a_8 * a_8, (n & 16u) != 0u);
        let is_exact = a == trunc(a) && abs(result) < 16777216.0;
        let is_safe = abs(result) > 1e-30 && abs(result) < 1e30;
        if (is_exact || (n <= 4u && is_safe)) { return select(result, 1.0 / result, falls); }
    }
    let size = power_of_size(a_size, b);
    return select(size, -size, is_negative && odd);
}

fn power_of_number(a: f32, b: f32) -> f32 {
    let a_bits = bitcast<u32>(a);
    // by the bits: compilers may take NaN for any number
    if ((bitcast<u32>(b) & 0x7fffffffu) != 0x3f000000u) { return power(a, b); }
    // where a root differs from a power
    if (a_bits == 0x80000000u) { return select(a, infinity(a), b < 0.0); }
    if (a_bits == 0xff800000u) { return bitcast<f32>(a_bits | 0x400000u); }
    return power(a, b);
}

// The first 12 bits of a number.
fn power_head(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }

// Of numbers near 1 + k / 8: (128 r, 16 t, u) with t + u / 2^34 = -log2 r, where r is near their inverse. Chosen
// step by step, for lanes of which each reads another place of an array wait for each other.
fn power_entry(k: u32) -> vec3<i32> {
    let is_odd = (k & 1u) != 0u;
    let is_second = (k & 2u) != 0u;
    let is_upper = (k & 4u) != 0u;
    // 32 * 128 r + 16 t
    let low = select(select(4096, 3651, is_odd), select(3269, 2983, is_odd), is_second);
    let high = select(select(2729, 2539, is_odd), select(2349, 2191, is_odd), is_second);
    let both = select(select(low, high, is_upper), 2064, k == 8u);
    let u_low = select(select(0, -350297776, is_odd), select(258980653, 400998572, is_odd), is_second);
    let u_high = select(select(482910040, 149795606, is_odd), select(-39935617, -428858347, is_odd),
        is_second);
    return vec3<i32>(both >> 5u, both & 31, select(u_low, u_high, is_upper));
}

// Whole numbers as floats, without a conversion, which takes a GPU longer than ten other steps: from
// -2^22 to 2^22, and from 0 to 2^23.
fn power_float(n: i32) -> f32 { return bitcast<f32>(n + 0x4b400000) - 12582912.0; }
fn power_float_of_bits(n: i32) -> f32 { return bitcast<f32>(n | 0x4b000000) - 8388608.0; }

// Whole and fractional parts of numbers, added.
fn power_added(sum: vec2<f32>, x: f32) -> vec2<f32> {
    let whole = round(x);
    return sum + vec2<f32>(whole, x - whole);
}

// a^b of a positive finite a, given as its bits, and a finite b.
fn power_of_size(a: u32, b: f32) -> f32 {
    var exponent = i32(a >> 23u) - 127;
    var mantissa = a & 0x7fffffu;
    if (exponent == -127) {
        let places = countLeadingZeros(mantissa) - 8u;
        mantissa = (mantissa << places) & 0x7fffffu;
        exponent = -126 - i32(places);
    }
    let entry = power_entry((mantissa + 0x80000u) >> 20u);
    // log2 a = exponent + t + u + log2(1 + f), f in units of 2^-30
    let f_units = i32((mantissa | 0x800000u) * u32(entry.x)) - 1073741824;
    let f_main = f32(f_units & -8) * 9.3132257e-10;
    let f_head = power_head(f_main);
    let f_rest = (f_main - f_head) + power_float_of_bits(f_units & 7) * 9.3132257e-10;
    let f = f_head + f_rest;
    // log(1 + f) - f
    let tail = 0.2 + f * (-0.16666667 + f * (0.14285714 + f * -0.125));
    let series = (f * f) * (-0.5 + f * (0.33333333 + f * (-0.25 + f * tail)));
    // log2(e) is 1.4423828125 and 3.1222855e-4
    let near = f_head * 1.4423828125;
    let rest = f_head * 3.1222855e-4 + (f_rest + series) * 1.44269504;
    let coarse = power_float(16 * exponent + entry.y) * 0.0625;
    var middle = power_head(near);
    var fine = (near - middle) + rest;
    if (entry.z != 0) {
        let units = entry.z + i32(near * 17179869184.0) + i32(round(rest * 17179869184.0));
        middle = power_float(units >> 19u) * 3.0517578e-5;
        fine = power_float_of_bits(units & 524287) * 5.8207661e-11;
    }
    let about = b * (coarse + (middle + fine));
    if (about > 129.0) { return infinity(1.0); }
    if (about < -151.0) { return 0.0; }
    let b_head = power_head(b);
    let b_rest = b - b_head;
    // what the rest of b adds is less than a tenth
    var sum = power_added(vec2<f32>(0.0, b_rest * (coarse + middle)), b * fine);
    sum = power_added(sum, b_head * middle);
    sum = power_added(sum, b_head * coarse);
    // the nearest whole number, and what is left, from -1/2 to 1/2
    let n = round(sum.y);
    let p = exp_small((sum.y - n) * 0.69314718);
    if (abs(about) < 125.0) { return lifted_by(p, sum.x + n); }
    return scaled(p, i32(sum.x + n));
}

fn power_u32(a: u32, b: u32) -> u32 {
    var result = 1u;
    var base = a;
    var n = b;
    while (n != 0u) {
        if ((n & 1u) != 0u) { result *= base; }
        base *= base;
        n >>= 1u;
    }
    return result;
}

fn power_i32(a: i32, b: i32) -> i32 {
    if (b < 0) { return select(select(0, select(1, -1, (b & 1) == 1), a == -1), 1, a == 1); }
    return bitcast<i32>(power_u32(bitcast<u32>(a), u32(b)));
}
