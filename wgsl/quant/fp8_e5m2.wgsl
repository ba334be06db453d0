// weight = d * q, q a float of 8 bits (E5M2: the high byte of a binary16), one f32 d for 128 columns
//   of a row
//
// uses  quant/fp8, half

fn floats_of(word: u32) -> vec4<f32> {
    let bits = (vec4<u32>(word) << vec4<u32>(8u, 0u, 0u, 0u)) >> vec4<u32>(0u, 0u, 8u, 16u);
    return vec4<f32>(
        half_to_float(bits.x & 0xff00u),
        half_to_float(bits.y & 0xff00u),
        half_to_float(bits.z & 0xff00u),
        half_to_float(bits.w & 0xff00u),
    );
}
