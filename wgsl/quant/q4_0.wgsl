// weight = d * (q - 8), q of 4 bits, one half d for 32 columns
//
// plane 0  quants  4 words per unit of 32 columns; word w holds columns 8w to 8w + 7: column
//                  8w + i in the low nibble of byte i, column 8w + 4 + i in the high nibble
// plane 1  scales  one half per unit
// source   GGUF block Q4_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

fn dequantize_word(word: u32, scale: f32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(scale * (unpack_low(word) - 8.0), scale * (unpack_high(word) - 8.0));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    return dequantize_word(plane_word(octet), plane_half(params.plane_1, octet >> 2u));
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let words = weight[unit];
    let scale = plane_half(params.plane_1, unit);
    let a = dequantize_word(words.x, scale);
    let b = dequantize_word(words.y, scale);
    let c = dequantize_word(words.z, scale);
    let d = dequantize_word(words.w, scale);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}
