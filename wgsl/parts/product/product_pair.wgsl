// Products of few factors in two floats: some 35 bits, and apart the sum of the exponents, in a third of
// the steps of wgsl/parts/product/product.wgsl. A pair is (high, low, exponent): high has 12 bits and
// the sign, so that its product with half of a factor is exact, and low is what is left.
//
// quad_is_normal(bits)           whether four floats are normal numbers: no others are factors
// pair_one()                     1
// pair_times(a, bits, none)      a times a float; at most 64 of them between two normalisations
// pair_times_quad(a, bits, none)
// pair_times_pair(a, b, none)
// pair_normal(a, places)         the same with |high| from 2^places to 2^(places + 1)
// pair_product(a)                as a product
// pair_of_product(a)             a product that is finite and not 0 as a pair
// pair_value(a)                  the nearest float
//
// `none` is a 0 that no compiler knows: what it hides is exact, and is not in another order.
//
// uses  product, exponential

struct Pair {
    high: f32,
    low: f32,
    exponent: i32,
}

fn quad_is_normal(bits: vec4<u32>) -> bool {
    return all(((bits >> vec4<u32>(23u)) & vec4<u32>(255u)) - 1u < vec4<u32>(254u));
}

fn pair_one() -> Pair { return Pair(1.0, 0.0, 0); }

fn pair_split(main: f32, rest: f32, exponent: i32, none: u32) -> Pair {
    let high = bitcast<f32>(bitcast<u32>(main + rest) & 0xfffff000u);
    return Pair(high, bitcast<f32>(bitcast<u32>(main - high) ^ none) + rest, exponent);
}

fn pair_times(a: Pair, bits: u32, none: u32) -> Pair {
    let x = bitcast<f32>((bits & 0x807fffffu) | 0x3f800000u);
    let x_high = bitcast<f32>((bits & 0x807ff000u) | 0x3f800000u);
    let exponent = a.exponent + i32((bits >> 23u) & 255u) - 127;
    return pair_split(a.high * x_high, a.high * (x - x_high) + a.low * x, exponent, none);
}

fn pair_times_quad(a: Pair, bits: vec4<u32>, none: u32) -> Pair {
    let two = pair_times(pair_times(a, bits.x, none), bits.y, none);
    return pair_times(pair_times(two, bits.z, none), bits.w, none);
}

fn pair_times_pair(a: Pair, b: Pair, none: u32) -> Pair {
    let rest = a.high * b.low + a.low * (b.high + b.low);
    return pair_split(a.high * b.high, rest, a.exponent + b.exponent, none);
}

// n of a |high| from 2^n to 2^(n + 1).
fn pair_power(a: Pair) -> i32 { return i32((bitcast<u32>(a.high) >> 23u) & 255u) - 127; }

fn pair_normal(a: Pair, places: i32) -> Pair {
    let power = pair_power(a) - places;
    let factor = bitcast<f32>(u32(127 - power) << 23u);
    return Pair(a.high * factor, a.low * factor, a.exponent + power);
}

fn pair_product(a: Pair) -> vec2<u32> {
    let power = pair_power(a);
    let bits = bitcast<u32>(a.high);
    let sign = bits & PRODUCT_SIGN;
    let low = bitcast<f32>(bitcast<u32>(a.low) ^ sign) * bitcast<f32>(u32(157 - power) << 23u);
    let size = (((bits & 0x7fffffu) | 0x800000u) << 7u) + bitcast<u32>(i32(round(low)));
    let places = countLeadingZeros(size);
    let exponent = a.exponent + power + 1 - i32(places);
    return vec2<u32>(size << places, sign | u32(exponent + PRODUCT_BIAS));
}

fn pair_of_product(a: vec2<u32>) -> Pair {
    let sign = bitcast<f32>((a.y & PRODUCT_SIGN) | 0x3f800000u);
    let high = f32(a.x >> 20u) * 4.8828125e-4;
    let low = f32(a.x & 0xfffffu) * 4.6566129e-10;
    return Pair(sign * high, sign * low, product_exponent(a));
}

fn pair_value(a: Pair) -> f32 {
    let value = a.high + a.low;
    let bits = bitcast<u32>(value);
    let field = i32((bits >> 23u) & 255u) + a.exponent;
    if (field > 0 && field < 255) { return bitcast<f32>(bits + (u32(a.exponent) << 23u)); }
    if (field > 0) { return infinity(value); }
    return scaled(value, max(a.exponent, -250));
}
