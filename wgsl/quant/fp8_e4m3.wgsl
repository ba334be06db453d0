// weight = d * q, q a float of 8 bits (E4M3: no infinities), one f32 d for 128 columns of a row
//
// uses  quant/fp8

// The floats of four bytes, exactly: an integer of up to 18 bits, then 2^-9 of it.
fn floats_of(word: u32) -> vec4<f32> {
    let bytes = (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
    let exponent = (bytes >> vec4<u32>(3u)) & vec4<u32>(15u);
    let one = select(vec4<u32>(8u), vec4<u32>(0u), exponent == vec4<u32>(0u));
    let steps = ((bytes & vec4<u32>(7u)) | one) << (max(exponent, vec4<u32>(1u)) - 1u);
    let bits = bitcast<vec4<u32>>(vec4<f32>(steps) * 0.001953125);
    let is_number = (bytes & vec4<u32>(127u)) != vec4<u32>(127u);
    let signs = (bytes & vec4<u32>(128u)) << vec4<u32>(24u);
    return bitcast<vec4<f32>>(select(vec4<u32>(0x7fc00000u), bits, is_number) | signs);
}
