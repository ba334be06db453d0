// float_to_half(value)    the IEEE 754 binary16 nearest to an f32, ties to even, in the low 16 bits
// float_to_bfloat(value)  the bfloat16 nearest to an f32, ties to even, in the low 16 bits
// float_to_i32(value)     its whole part; -2^31 for NaN and what lies outside, as on x86 and so in PyTorch
// float_to_u32(value)     the same modulo 2^32 for negative numbers; 0 from 2^32 on
// float_from_f64(bits)    the f32 nearest to an IEEE 754 binary64, ties to even; bits has its low word first
// float_to_f64(value)     the bits of the binary64 equal to an f32
//
// By integers: `pack2x16float` leaves overflow to the implementation.

fn float_to_half(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return sign | 0x7e00u; }
    if (magnitude >= 0x477ff000u) { return sign | 0x7c00u; }
    if (magnitude < 0x33000001u) { return sign; }
    if (magnitude < 0x38800000u) {
        let shift = 126u - (magnitude >> 23u);
        let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        let rest = mantissa & ((1u << shift) - 1u);
        let half_way = 1u << (shift - 1u);
        let kept = mantissa >> shift;
        return sign | (kept + select(0u, 1u, rest > half_way || (rest == half_way && (kept & 1u) == 1u)));
    }
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
}

fn float_to_bfloat(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn float_to_i32(value: f32) -> i32 {
    return select(i32(value), -0x7fffffff - 1, (bitcast<u32>(value) & 0x7fffffffu) >= 0x4f000000u);
}

fn float_to_u32(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let large = select(0u, u32(value), bits < 0x4f800000u);
    return select(bitcast<u32>(float_to_i32(value)), large, bits >= 0x4f000000u && bits <= 0x7f800000u);
}

fn float_from_f64(bits: vec2<u32>) -> f32 {
    let sign = bits.y & 0x80000000u;
    let exponent = (bits.y >> 20u) & 0x7ffu;
    let is_rest = (bits.y & 0xfffffu) != 0u || bits.x != 0u;
    if (exponent == 0x7ffu) { return bitcast<f32>(sign | select(0x7f800000u, 0x7fc00000u, is_rest)); }
    // 25 bits of the number, the last of which is half a unit, and whether anything is below
    let mantissa = 0x1000000u | ((bits.y & 0xfffffu) << 4u) | (bits.x >> 28u);
    var below = (bits.x & 0xfffffffu) != 0u;
    let power = i32(exponent) - 896;
    if (power >= 255) { return bitcast<f32>(sign | 0x7f800000u); }
    if (power < -23) { return bitcast<f32>(sign); }
    // a subnormal keeps fewer of them
    let shift = u32(max(1 - power, 0));
    below = below || (mantissa & ((1u << shift) - 1u)) != 0u;
    let kept = mantissa >> shift;
    let whole = (kept >> 1u) + (kept & 1u & (u32(below) | (kept >> 1u)));
    return bitcast<f32>(sign | (whole + (u32(max(power - 1, 0)) << 23u)));
}

fn float_to_f64(value: f32) -> vec2<u32> {
    let bits = bitcast<u32>(value);
    let sign = bits & 0x80000000u;
    var exponent = (bits >> 23u) & 0xffu;
    var mantissa = bits & 0x7fffffu;
    if (exponent == 0u) {
        if (mantissa == 0u) { return vec2<u32>(0u, sign); }
        let places = countLeadingZeros(mantissa) - 8u;
        mantissa = (mantissa << places) & 0x7fffffu;
        exponent = 897u - places;
    } else {
        exponent = select(exponent + 896u, 0x7ffu, exponent == 0xffu);
    }
    return vec2<u32>(mantissa << 29u, sign | (exponent << 20u) | (mantissa >> 3u));
}
