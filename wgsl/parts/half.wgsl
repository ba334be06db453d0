// half_to_float(bits)    the f32 equal to the IEEE 754 binary16 in the low 16 bits of `bits`
// bfloat_to_float(bits)  the f32 equal to the bfloat16 in the low 16 bits of `bits`
//
// Exact for every bit pattern. `unpack2x16float` is not: drivers may flush binary16 subnormals, and
// quantized weights have subnormal scales.
//
// source  IEEE 754-2019, 3.4

fn half_to_float(bits: u32) -> f32 {
    let exponent = bits & 0x7c00u;
    let magnitude = (bits & 0x7fffu) << 13u;
    let subnormal = bitcast<u32>(f32(bits & 0x3ffu) * 5.9604644775390625e-8);
    let finite = select(magnitude + 0x38000000u, subnormal, exponent == 0u);
    let word = select(finite, magnitude + 0x70000000u, exponent == 0x7c00u);
    return bitcast<f32>(word | ((bits & 0x8000u) << 16u));
}

fn bfloat_to_float(bits: u32) -> f32 {
    return bitcast<f32>(bits << 16u);
}
