// weight = factor * d * q, q a float of 4 bits (E2M1), d one of 8 bits (E4M3) for 16 columns, one f32
// factor for the weight
//
// plane 0  quants  4 words per unit of 32 columns; nibble i of word w is column 8w + i
// plane 1  scales  two bytes per unit
// plane 2  factor  one word
// source   compressed-tensors, format nvfp4-pack-quantized; NVIDIA ModelOpt
// uses     quant/unpack, quant/octets, quant/levels, quant/bytes, quant/nibbles

// The scale times the factor; NaN where the bits say so.
fn scale_of(byte: u32) -> f32 {
    let exponent = (byte >> 3u) & 15u;
    let mantissa = (byte & 7u) | select(0u, 8u, exponent > 0u);
    let size = f32(mantissa << (max(exponent, 1u) - 1u)) * 0.001953125;
    let bits = select(bitcast<u32>(size), 0x7fc00000u, (byte & 127u) == 127u);
    return bitcast<f32>(bits | ((byte & 128u) << 24u)) * bitcast<f32>(plane_word(plane_start(2u)));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let d = scale_of(plane_byte(plane_start(1u), octet >> 1u));
    let word = plane_word(octet);
    return array<vec4<f32>, 2>(
        d * (0.5 * levels(E2M1, nibbles(word))),
        d * (0.5 * levels(E2M1, nibbles(word >> 16u))),
    );
}
