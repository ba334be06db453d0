// Products of any number of factors, with 32 bits and an exponent of their own, so that no part of a long
// product leaves the range of floats where the whole lies within it.
//
// (mantissa from 2^31 on, or 0; bits from above: sign, NaN, infinite, 29 of the exponent + 2^28)
//
// product_of(x)        a float as a product
// product_times(a, b)
// product_value(a)     the nearest float
//
// uses  exponential

const PRODUCT_SIGN = 0x80000000u;
const PRODUCT_NAN = 0x40000000u;
const PRODUCT_INFINITE = 0x20000000u;
const PRODUCT_BIAS = 268435456;
const PRODUCT_ONE = vec2<u32>(0x80000000u, 268435456u);

fn product_of(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    let sign = bits & PRODUCT_SIGN;
    let size = bits & 0x7fffffffu;
    if (size == 0u) { return vec2<u32>(0u, sign | u32(PRODUCT_BIAS)); }
    if (size > 0x7f800000u) { return vec2<u32>(0x80000000u, PRODUCT_NAN); }
    if (size == 0x7f800000u) { return vec2<u32>(0x80000000u, sign | PRODUCT_INFINITE); }
    let fraction = size & 0x7fffffu;
    if (size < 0x800000u) {
        let places = countLeadingZeros(fraction);
        return vec2<u32>(fraction << places, sign | u32(PRODUCT_BIAS - 118 - i32(places)));
    }
    return vec2<u32>((fraction | 0x800000u) << 8u, sign | u32(PRODUCT_BIAS - 127 + i32(size >> 23u)));
}

fn product_times(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let sign = (a.y ^ b.y) & PRODUCT_SIGN;
    let either = a.y | b.y;
    let is_zero = a.x == 0u || b.x == 0u;
    if ((either & PRODUCT_NAN) != 0u || ((either & PRODUCT_INFINITE) != 0u && is_zero)) {
        return vec2<u32>(0x80000000u, PRODUCT_NAN);
    }
    if ((either & PRODUCT_INFINITE) != 0u) { return vec2<u32>(0x80000000u, sign | PRODUCT_INFINITE); }
    if (is_zero) { return vec2<u32>(0u, sign | u32(PRODUCT_BIAS)); }
    // 64 bits from products of 16
    let low = (a.x & 0xffffu) * (b.x & 0xffffu);
    let left = (a.x >> 16u) * (b.x & 0xffffu);
    let right = (a.x & 0xffffu) * (b.x >> 16u);
    let middle = (low >> 16u) + (left & 0xffffu) + (right & 0xffffu);
    var high = (a.x >> 16u) * (b.x >> 16u) + (left >> 16u) + (right >> 16u) + (middle >> 16u);
    var rest = (middle << 16u) | (low & 0xffffu);
    var exponent = product_exponent(a) + product_exponent(b) + 1;
    if ((high >> 31u) == 0u) {
        high = (high << 1u) | (rest >> 31u);
        rest <<= 1u;
        exponent -= 1;
    }
    high += rest >> 31u;
    if (high == 0u) {
        high = 0x80000000u;
        exponent += 1;
    }
    let kept = clamp(exponent, -100000000, 100000000);
    return vec2<u32>(high, sign | u32(kept + PRODUCT_BIAS));
}

// n of a product from 2^n to 2^(n + 1).
fn product_exponent(a: vec2<u32>) -> i32 { return i32(a.y & 0x1fffffffu) - PRODUCT_BIAS; }

fn product_value(a: vec2<u32>) -> f32 {
    if ((a.y & PRODUCT_NAN) != 0u) { return bitcast<f32>(0x7fc00000u | (a.x & 1u)); }
    let sign = bitcast<f32>((a.y & PRODUCT_SIGN) | 0x3f800000u);
    if ((a.y & PRODUCT_INFINITE) != 0u) { return infinity(sign); }
    let exponent = product_exponent(a);
    if (a.x == 0u || exponent < -152) { return with_sign(0.0, sign); }
    if (exponent > 128) { return infinity(sign); }
    let rounded = f32((a.x >> 8u) + ((a.x >> 7u) & 1u)) * 1.1920929e-7;
    return with_sign(scaled(rounded, exponent), sign);
}
