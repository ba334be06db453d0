// weight = 2^(e - 127) * q, q a float of 4 bits (E2M1), e a byte for 32 columns
//
// A weight is made of bits: devices may flush what is below the normal numbers.
//
// plane 0  quants    16 bytes per unit, see quant/levels
// plane 1  exponents one byte per unit
// source   Open Compute Project 2023, "OCP Microscaling Formats (MX)", as GGUF block MXFP4
// uses     quant/unpack, quant/octets, quant/levels, quant/bytes

fn floats_of(bytes: u32, e: u32) -> vec4<f32> {
    let q = (vec4<u32>(bytes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u);
    let sign = (q & vec4<u32>(8u)) << vec4<u32>(28u);
    let mantissa = q & vec4<u32>(1u);
    let power = (q >> vec4<u32>(1u)) & vec4<u32>(3u);
    // Twice the number, an integer: 2 + mantissa times a power of two, or just the mantissa.
    let whole = select(
        (vec4<u32>(2u) | mantissa) << (max(power, vec4<u32>(1u)) - 1u), mantissa, power == vec4<u32>(0u));
    let is_normal = power > vec4<u32>(0u);
    let fraction = select(vec4<u32>(0u), mantissa << vec4<u32>(22u), is_normal);
    let exponent = vec4<u32>(e) + power;
    let normal = ((exponent - 1u) << vec4<u32>(23u)) | fraction;
    let small = whole << vec4<u32>(21u + min(e, 2u));
    let finite = select(normal, small, exponent < vec4<u32>(2u));
    let bits = select(finite, vec4<u32>(0x7f800000u), exponent > vec4<u32>(255u));
    return bitcast<vec4<f32>>(select(bits | sign, vec4<u32>(0u), whole == vec4<u32>(0u)));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_nibbles(octet);
    let e = plane_byte(plane_start(1u), octet >> 2u);
    return array<vec4<f32>, 2>(floats_of(bytes.x, e), floats_of(bytes.y, e));
}
