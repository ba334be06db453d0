// float_to_half(value)    the IEEE 754 binary16 nearest to an f32, ties to even, in the low 16 bits
// float_to_bfloat(value)  the bfloat16 nearest to an f32, ties to even, in the low 16 bits
// float_to_i32(value)     its whole part; -2^31 for NaN and what lies outside, as on x86 and so in PyTorch
// float_to_u32(value)     the same modulo 2^32 for negative numbers; 0 from 2^32 on
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
