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
    // of any bits; all but few are the power, and one branch is left for the others
    let log = power_log(a_bits, 0u);
    let about = b * (log.x + log.y);
    let found = power_of_log(log, b, about);
    let near = bitcast<f32>(bitcast<u32>(found.p) + (found.n << 23u));
    let is_plain = a_bits - 0x800000u < 0x7f000000u && b_bits != 0x3f000000u
        && (bitcast<u32>(about) & 0x7fffffffu) <= 0x42fa0000u;
    if (!is_plain || b == power_float(power_round(b))) { return power_case(a, b, is_plain, near); }
    return near;
}

// Powers of what is not positive and normal, to whole numbers and a half, and those beyond 2^125 or 2^-125. Of
// plain ones `near` is the power but for an ulp.
fn power_case(a: f32, b: f32, is_plain: bool, near: f32) -> f32 {
    let a_bits = bitcast<u32>(a);
    let b_bits = bitcast<u32>(b);
    let a_size = a_bits & 0x7fffffffu;
    let b_size = b_bits & 0x7fffffffu;
    let falls = (b_bits >> 31u) == 1u;
    // from 2^24 on all are even
    let whole = b_size >= 0x4b800000u || b == trunc(b);
    if (whole && b_size <= 0x41b80000u && a_size - 0x800000u < 0x7f000000u) {
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
        let is_safe = n <= 4u && abs(result) > 1e-30 && abs(result) < 1e30;
        if (is_safe || (abs(result) < 16777216.0 && a == trunc(a))) {
            return select(result, 1.0 / result, falls);
        }
    }
    if (is_plain) { return near; }
    if (b_size == 0u || a_bits == 0x3f800000u) { return 1.0; }
    if (is_nan(a)) { return a; }
    if (is_nan(b)) { return b; }
    let is_negative = (a_bits >> 31u) == 1u;
    if (b_size == 0x7f800000u) {
        if (a_size == 0x3f800000u) { return 1.0; }
        return select(0.0, infinity(1.0), (a_size > 0x3f800000u) != falls);
    }
    if (b == 1.0) { return a; }
    if (b == 2.0) { return a * a; }
    if (b == 0.5 && a_size != 0u && !is_negative) { return sqrt(a); }
    if (b == -1.0) { return 1.0 / a; }
    let odd = whole && b_size < 0x4b800000u && (i32(b) & 1) == 1;
    if (a_size == 0u || a_size == 0x7f800000u) {
        let grows = (a_size != 0u) != falls;
        let size = select(0.0, infinity(1.0), grows);
        return select(size, with_sign(size, a), odd);
    }
    if (is_negative && !whole) { return bitcast<f32>(0x7fc00000u | (a_bits & 0x80000000u)); }
    // subnormal numbers count
    let lift = select(0u, countLeadingZeros(a_size) - 8u, a_size < 0x800000u);
    let log = power_log(a_size << lift, lift);
    let about = b * (log.x + log.y);
    var size = select(0.0, infinity(1.0), about > 0.0);
    if (about > -151.0 && about < 129.0) {
        let found = power_of_log(log, b, about);
        size = scaled(found.p, bitcast<i32>(found.n - 0x4b400000u));
    }
    return select(size, -size, is_negative && odd);
}

fn power_of_number(a: f32, b: f32) -> f32 {
    // as PyTorch multiplies; all lanes go the same way
    if (b == 2.0) { return a * a; }
    if (b == 3.0) { return a * a * a; }
    // where a root differs from a power; by the bits: compilers may take NaN for any number
    let a_bits = bitcast<u32>(a);
    if ((bitcast<u32>(b) & 0x7fffffffu) == 0x3f000000u) {
        if (a_bits == 0x80000000u) { return select(a, infinity(a), b < 0.0); }
        if (a_bits == 0xff800000u) { return bitcast<f32>(a_bits | 0x400000u); }
    }
    return power(a, b);
}

// The first 12 bits of a number.
fn power_head(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }

// The nearest whole number, up to 2^22, in the last bits of 1.5 * 2^23 and as a float. A GPU takes as long for
// one rounding or conversion as for eight of these steps.
fn power_round(x: f32) -> u32 { return bitcast<u32>(x + 12582912.0); }
fn power_float(n: u32) -> f32 { return bitcast<f32>((n & 0x7fffffu) | 0x4b000000u) - 12582912.0; }

// log2(a / 2^lift) of a positive normal a, given as its bits, as a number of 12 bits and the rest.
fn power_log(a: u32, lift: u32) -> vec2<f32> {
    // a = m 2^exponent, m from 0.707 to 1.414, and log2 m = 2 atanh(s) / log 2 with s = f / (2 + f)
    let above = a - 0x3f3504f3u;
    let exponent = bitcast<f32>((bitcast<i32>(above) >> 23u) - bitcast<i32>(lift) + 0x4b400000) - 12582912.0;
    let m = bitcast<f32>(a - (above & 0xff800000u));
    // 0, which no compiler knows: what it hides is not taken for a factor or an end that another sum has, too
    let nothing = bitcast<u32>(m) & 0x80000000u;
    let f = m - 1.0;
    let f_head = power_head(f);
    let inverse = 1.0 / (m + 1.0);
    let s_head = power_head(f * inverse);
    let s_hidden = bitcast<f32>(bitcast<u32>(s_head) ^ nothing);
    let s_rest = (((f - 2.0 * s_head) - s_head * f_head) - s_hidden * (f - f_head)) * inverse;
    let s = s_head + s_rest;
    let z = s * s;
    let tail = (s * z) * (0.9617967 + z * (0.5770829 + z * (0.4117043 + z * 0.34025943)));
    // 2 / log 2 is 2.884765625 and 6.2445679e-4; the logarithm is high and low
    let near = s_head * 2.884765625;
    let high = power_head(exponent + near);
    let ends = (bitcast<f32>(bitcast<u32>(exponent) ^ nothing) - high) + near;
    return vec2<f32>(high, ends + (s_hidden * 6.2445679e-4 + (s_rest * 2.8853901 + tail)));
}

// p 2^n, with n in the last bits of 1.5 * 2^23 and p from 0.7 to 1.42.
struct PowerParts {
    p: f32,
    n: u32,
}

// 2^(b log), where the product is about `about`
fn power_of_log(log: vec2<f32>, b: f32, about: f32) -> PowerParts {
    // the exact part of the product, of which the whole number is taken off without rounding, and the small ones
    let n = power_round(about);
    let b_head = power_head(b);
    // the sign of a power of 2 is 0, as in power_log
    let hidden = bitcast<f32>(bitcast<u32>(log.x) ^ (n & 0x80000000u));
    // 2^r, r from -1/2 to 1/2
    let r = (b_head * log.x - power_float(n)) + ((b - b_head) * hidden + b * log.y);
    var p = 1.5352317e-4;
    p = p * r + 1.3400170e-3;
    p = p * r + 9.6184500e-3;
    p = p * r + 5.5503293e-2;
    p = p * r + 0.24022648;
    p = p * r + 0.69314720;
    p = p * r + 1.0;
    return PowerParts(p, n);
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
