// Products of few factors in two floats: some 35 bits, and apart the sum of the exponents, in a third of
// the steps of wgsl/parts/product/product.wgsl. A pair is (high, low, exponent): high has 12 bits and
// the sign, so that its product with half of a factor is exact, and low is what is left.
//
// quad_is_near(bits)             whether four floats are from 2^-30 to 2^30 in size: of no others are there
//                                quad_products
// quad_products(bits, none)      the first of them, and products of the first two, three and all
// quad_product(bits, none)       the last of these, as a pair
// pair_one()                     1
// pair_times_pair(a, b, none)
// pair_normal(a, places)         the same with |high| from 2^places to 2^(places + 1)
// pair_product(a)                as a product
// pair_of_product(a)             a product that is finite and not 0 as a pair
//
// `none` is a 0 that no compiler knows: what it hides is exact, and is not in another order.
//
// uses  product

struct Pair {
    high: f32,
    low: f32,
    exponent: i32,
}

struct Products {
    high: vec4<f32>,
    low: vec4<f32>,
}

fn quad_is_near(bits: vec4<u32>) -> bool {
    return all((bits & vec4<u32>(0x7fffffffu)) - 0x30800000u < vec4<u32>(0x1e000000u));
}

fn pair_head(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }

// (high, low) times a factor, whose halves have 12 bits, too.
fn pair_times_factor(a: vec2<f32>, x: f32, none: u32) -> vec2<f32> {
    let head = pair_head(x);
    let main = a.x * head;
    let rest = a.x * (x - head) + a.y * x;
    let high = pair_head(main + rest);
    return vec2<f32>(high, bitcast<f32>(bitcast<u32>(main - high) ^ none) + rest);
}

fn quad_products(bits: vec4<u32>, none: u32) -> Products {
    let x = bitcast<vec4<f32>>(bits);
    let a = vec2<f32>(pair_head(x.x), x.x - pair_head(x.x));
    let b = pair_times_factor(a, x.y, none);
    let c = pair_times_factor(b, x.z, none);
    let d = pair_times_factor(c, x.w, none);
    return Products(vec4<f32>(a.x, b.x, c.x, d.x), vec4<f32>(a.y, b.y, c.y, d.y));
}

fn quad_product(bits: vec4<u32>, none: u32) -> Pair {
    let all = quad_products(bits, none);
    return pair_normal(Pair(all.high.w, all.low.w, 0), 0);
}

fn pair_one() -> Pair { return Pair(1.0, 0.0, 0); }

fn pair_times_pair(a: Pair, b: Pair, none: u32) -> Pair {
    let main = a.high * b.high;
    let rest = a.high * b.low + a.low * (b.high + b.low);
    let high = pair_head(main + rest);
    return Pair(high, bitcast<f32>(bitcast<u32>(main - high) ^ none) + rest, a.exponent + b.exponent);
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
