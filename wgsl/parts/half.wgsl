// half_to_float(bits)         the f32 equal to the IEEE 754 binary16 in the low 16 bits of `bits`
// bfloat16_to_float(bits)     the f32 equal to the bfloat16 in the low 16 bits of `bits`
// float_to_half(value)        the binary16 nearest to a f32, ties to even, in the low 16 bits
// float_to_bfloat16(value)    the bfloat16 nearest to a f32, ties to even, in the low 16 bits
//
// Exact for every bit pattern. `unpack2x16float` and `pack2x16float` are not: drivers may flush
// binary16 subnormals (quantized weights have subnormal scales) and choose how they round.
//
// source  IEEE 754-2019, 3.4 and 4.3.1

fn half_to_float(bits: u32) -> f32 {
    let exponent = bits & 0x7c00u;
    let magnitude = (bits & 0x7fffu) << 13u;
    let subnormal = bitcast<u32>(f32(bits & 0x3ffu) * 5.9604644775390625e-8);
    let finite = select(magnitude + 0x38000000u, subnormal, exponent == 0u);
    let word = select(finite, magnitude + 0x70000000u, exponent == 0x7c00u);
    return bitcast<f32>(word | ((bits & 0x8000u) << 16u));
}

fn bfloat16_to_float(bits: u32) -> f32 {
    return bitcast<f32>(bits << 16u);
}

fn float_to_half(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return sign | 0x7e00u | ((magnitude >> 13u) & 0x1ffu);
    }
    if (magnitude >= 0x47800000u) {
        return sign | 0x7c00u;
    }
    if (magnitude >= 0x38800000u) {
        let rebased = magnitude - 0x38000000u;
        return sign | ((rebased + 0xfffu + ((rebased >> 13u) & 1u)) >> 13u);
    }
    if (magnitude < 0x33000000u) {
        return sign;
    }
    let shift = 126u - (magnitude >> 23u);  // 14 to 24 bits fall off
    let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    let kept = mantissa >> shift;
    let lost = mantissa & ((1u << shift) - 1u);
    let tie = 1u << (shift - 1u);
    return sign | (kept + select(0u, 1u, lost > tie || (lost == tie && (kept & 1u) == 1u)));
}

fn float_to_bfloat16(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (bits >> 16u) | 0x40u;
    }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
