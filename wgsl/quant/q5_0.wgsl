// weight = d * (q - 16), q of 5 bits, one half d for 32 columns
//
// plane 0  quants  4 words per unit of 32 columns; word w holds the low 4 bits of columns 8w to
//                  8w + 7: column 8w + i in the low nibble of byte i, 8w + 4 + i in the high one
// plane 1  scales  one half per unit
// plane 2  fifths  one word per unit, bit i the fifth bit of column i
// source   GGUF block Q5_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

fn dequantize_word(word: u32, fifth: u32, scale: f32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        scale * (unpack_low(word) + unpack_fifth(fifth) - 16.0),
        scale * (unpack_high(word) + unpack_fifth(fifth >> 4u) - 16.0),
    );
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let unit = octet >> 2u;
    let fifth = plane_word(params.plane_2 + unit) >> ((octet & 3u) << 3u);
    return dequantize_word(plane_word(octet), fifth, plane_half(params.plane_1, unit));
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let words = weight[unit];
    let scale = plane_half(params.plane_1, unit);
    let fifth = plane_word(params.plane_2 + unit);
    let a = dequantize_word(words.x, fifth, scale);
    let b = dequantize_word(words.y, fifth >> 8u, scale);
    let c = dequantize_word(words.z, fifth >> 16u, scale);
    let d = dequantize_word(words.w, fifth >> 24u, scale);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}
