// weight = d * q, q a float of 4 bits (E2M1), d one of 8 bits (E4M3, without sign) for 16 columns
//
// plane 0  quants  16 bytes per unit: of each 16 columns 8 bytes, column i in the low nibble of byte
//                  i, column 8 + i in the high one
// plane 1  scales  two bytes per unit
// source   GGUF block NVFP4, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/levels, quant/bytes

// Twice the numbers: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives.
const E2M1 = vec4<u32>(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);

// Half the scale; one of all bits is none.
fn half_scale(byte: u32) -> f32 {
    let exponent = (byte >> 3u) & 15u;
    let mantissa = (byte & 7u) | select(0u, 8u, exponent > 0u);
    let steps = f32(mantissa << (max(exponent, 1u) - 1u));
    return select(steps * 0.0009765625, 0.0, byte == 127u);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let at = octet & 0xfffffffeu;
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u)) >> vec2<u32>((octet & 1u) << 2u);
    let bytes = words & vec2<u32>(0x0f0f0f0fu);
    let d = half_scale(plane_byte(plane_start(1u), octet >> 1u));
    return array<vec4<f32>, 2>(d * levels(E2M1, bytes.x), d * levels(E2M1, bytes.y));
}
