// half_to_float(bits)    the f32 equal to the IEEE 754 binary16 in the low 16 bits of `bits`
// bfloat_to_float(bits)  the f32 equal to the bfloat16 in the low 16 bits of `bits`
//
// Exact for every bit pattern. `unpack2x16float` is not: drivers may flush binary16 subnormals, and
// quantized weights have subnormal scales.
//
// source  IEEE 754-2019, 3.4

fn half_to_float(bits: u32) -> f32 {
    let magnitude = (bits & 0x7fffu) << 13u;
    let is_infinite = magnitude >= 0x0f800000u;
    let normal = magnitude + select(0x38000000u, 0x70000000u, is_infinite);
    // A subnormal with an exponent bit set is 2^-14 more than it should be.
    let subnormal = bitcast<u32>(bitcast<f32>(magnitude + 0x38800000u) - 6.103515625e-5);
    let value = select(normal, subnormal, magnitude < 0x00800000u);
    return bitcast<f32>(value | ((bits & 0x8000u) << 16u));
}

fn bfloat_to_float(bits: u32) -> f32 {
    return bitcast<f32>(bits << 16u);
}
