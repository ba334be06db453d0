// weight = d * q + m, q of 5 bits, two halves d and m for 32 columns
//
// d * q is exact in f32 (11 + 5 bits), so a fused multiply-add rounds as two steps do.
//
// plane 0  quants  4 words per unit of 32 columns; word w holds the low 4 bits of columns 8w to
//                  8w + 7: column 8w + i in the low nibble of byte i, 8w + 4 + i in the high one
// plane 1  scales  one word per unit, d in the low half, m in the high half
// plane 2  fifths  one word per unit, bit i the fifth bit of column i
// source   GGUF block Q5_1, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

fn dequantize_word(word: u32, fifth: u32, scale: f32, low: f32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        scale * (unpack_low(word) + unpack_fifth(fifth)) + low,
        scale * (unpack_high(word) + unpack_fifth(fifth >> 4u)) + low,
    );
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let unit = octet >> 2u;
    let scales = plane_word(params.plane_1 + unit);
    let fifth = plane_word(params.plane_2 + unit) >> ((octet & 3u) << 3u);
    let scale = half_to_float(scales & 0xffffu);
    return dequantize_word(plane_word(octet), fifth, scale, half_to_float(scales >> 16u));
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let words = weight[unit];
    let scales = plane_word(params.plane_1 + unit);
    let fifth = plane_word(params.plane_2 + unit);
    let scale = half_to_float(scales & 0xffffu);
    let low = half_to_float(scales >> 16u);
    let a = dequantize_word(words.x, fifth, scale, low);
    let b = dequantize_word(words.y, fifth >> 8u, scale, low);
    let c = dequantize_word(words.z, fifth >> 16u, scale, low);
    let d = dequantize_word(words.w, fifth >> 24u, scale, low);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}
