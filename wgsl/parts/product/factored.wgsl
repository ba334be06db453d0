// Products of any number of factors as size * 2^power, the size from 1 to 2 with what rounding took from it
// beside it: some 45 bits, in few steps. Zero, infinities and NaN are sizes, which no power changes, so that
// multiplying knows them: then `rest` says nothing.
//
// factors_of(x)                 four floats, with no rest
// factored_times(a, b, fused)   four products with four; `fused`: `fma` rounds once, as on all GPUs. Where it
//                               did not, a rest were 0, and a product as good as one of floats
// factored_normal(a, n)         the same with sizes from 2^n to 2^(n + 1)
// factored_whole(a, fused)      the product of all four
// factored_one(a, k)            one of them
// one_times(a, b, fused), one_normal(a)
// one_of_product(a)             a product as wgsl/parts/product/product.wgsl has it
// product_of_one(a)             as such a product
// rounded_off(a, b, product, fused)   of floats and their product
//
// uses  product, exponential

struct Factored {
    size: vec4<f32>,
    rest: vec4<f32>,
    power: vec4<i32>,
}

struct OneFactored {
    size: f32,
    rest: f32,
    power: i32,
}

fn factored_fields(size: vec4<f32>) -> vec4<u32> {
    return (bitcast<vec4<u32>>(size) >> vec4<u32>(23u)) & vec4<u32>(255u);
}

fn factors_of(x: vec4<f32>) -> Factored {
    let bits = bitcast<vec4<u32>>(x);
    let fields = factored_fields(x);
    var size = bitcast<vec4<f32>>((bits & vec4<u32>(0x807fffffu)) | vec4<u32>(0x3f800000u));
    var power = vec4<i32>(fields) - 127;
    if (any(fields - 1u >= vec4<u32>(254u))) {
        // what is below all normal numbers is lifted by a conversion
        let lifted = bitcast<vec4<u32>>(vec4<f32>(bits & vec4<u32>(0x7fffffu)));
        let is_zero = lifted == vec4<u32>();
        let low = (lifted & vec4<u32>(0x7fffffu)) | select(vec4<u32>(0x3f800000u), vec4<u32>(), is_zero);
        let signed = bitcast<vec4<f32>>(low | (bits & vec4<u32>(0x80000000u)));
        size = select(select(size, signed, fields == vec4<u32>()), x, fields == vec4<u32>(255u));
        power = select(power, vec4<i32>(lifted >> vec4<u32>(23u)) - 276, fields == vec4<u32>());
    }
    return Factored(size, vec4<f32>(), power);
}

// Halves of 12 bits have products that are exact.
fn half_of(x: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}

fn rounded_off(a: vec4<f32>, b: vec4<f32>, product: vec4<f32>, fused: bool) -> vec4<f32> {
    if (fused) {
        return fma(a, b, -product);
    }
    let a_half = half_of(a);
    let b_half = half_of(b);
    let middle = a_half * (b - b_half) + (a - a_half) * b_half;
    return ((a_half * b_half - product) + middle) + (a - a_half) * (b - b_half);
}

fn factored_times(a: Factored, b: Factored, fused: bool) -> Factored {
    let size = a.size * b.size;
    let rest = rounded_off(a.size, b.size, size, fused) + (a.size * b.rest + a.rest * b.size);
    return Factored(size, rest, a.power + b.power);
}

fn factored_normal(a: Factored, n: i32) -> Factored {
    // of an infinity, whose field is 255, the factor is no zero either
    let fields = vec4<i32>(min(factored_fields(a.size), vec4<u32>(252u)));
    let factor = bitcast<vec4<f32>>(vec4<u32>(254 + n - fields) << vec4<u32>(23u));
    return Factored(a.size * factor, a.rest * factor, a.power + fields - (127 + n));
}

fn factored_one(a: Factored, k: u32) -> OneFactored {
    return OneFactored(a.size[k], a.rest[k], a.power[k]);
}

fn one_times(a: OneFactored, b: OneFactored, fused: bool) -> OneFactored {
    let size = a.size * b.size;
    var off = 0.0;
    if (fused) {
        off = fma(a.size, b.size, -size);
    } else {
        off = rounded_off(vec4<f32>(a.size), vec4<f32>(b.size), vec4<f32>(size), false).x;
    }
    return OneFactored(size, off + (a.size * b.rest + a.rest * b.size), a.power + b.power);
}

fn one_normal(a: OneFactored) -> OneFactored {
    let field = i32(min((bitcast<u32>(a.size) >> 23u) & 255u, 252u));
    let factor = bitcast<f32>(u32(254 - field) << 23u);
    return OneFactored(a.size * factor, a.rest * factor, clamp(a.power + field - 127, -100000000, 100000000));
}

// The product of all four, normal.
fn factored_whole(a: Factored, fused: bool) -> OneFactored {
    let near = one_times(factored_one(a, 0u), factored_one(a, 1u), fused);
    let far = one_times(factored_one(a, 2u), factored_one(a, 3u), fused);
    return one_normal(one_times(near, far, fused));
}

fn one_of_product(a: vec2<u32>) -> OneFactored {
    let sign = a.y & PRODUCT_SIGN;
    if ((a.y & PRODUCT_NAN) != 0u) { return OneFactored(bitcast<f32>(0x7fc00000u | (a.x & 1u)), 0.0, 0); }
    if ((a.y & PRODUCT_INFINITE) != 0u) { return OneFactored(infinity(bitcast<f32>(sign)), 0.0, 0); }
    if (a.x == 0u) { return OneFactored(bitcast<f32>(sign), 0.0, 0); }
    let positive = bitcast<f32>(sign | 0x3f800000u);
    let size = positive * (f32(a.x >> 8u) * 1.1920929e-7);
    return OneFactored(size, positive * (f32(a.x & 255u) * 4.6566129e-10), product_exponent(a));
}

fn product_of_one(a: OneFactored) -> vec2<u32> {
    let bits = bitcast<u32>(a.size);
    let sign = bits & PRODUCT_SIGN;
    let field = (bits >> 23u) & 255u;
    if (field == 0u) { return vec2<u32>(0u, sign | u32(PRODUCT_BIAS)); }
    if (field == 255u) {
        return vec2<u32>(0x80000000u, select(sign | PRODUCT_INFINITE, PRODUCT_NAN, (bits & 0x7fffffu) != 0u));
    }
    // with 30 bits behind the point
    let rest = bitcast<f32>(bitcast<u32>(a.rest) ^ sign) * 1073741824.0;
    let whole = (((bits & 0x7fffffu) | 0x800000u) << 7u) + bitcast<u32>(i32(round(rest)));
    let places = countLeadingZeros(whole);
    return vec2<u32>(whole << places, sign | u32(a.power + 1 - i32(places) + PRODUCT_BIAS));
}
