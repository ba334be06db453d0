// weight = d * scale * q - dmin * low, q of 5 bits; scale and low of 6 bits for 32 columns, two
// halves d and dmin for 256
//
// Both products are exact in f32 (11 + 6 + 5 bits), so the subtraction alone rounds.
//
// plane 0  quants   4 words per unit of 32 columns; word w holds the low 4 bits of columns 8w to
//                   8w + 7: column 8w + i in the low nibble of byte i, 8w + 4 + i in the high one
// plane 1  headers  4 words per 8 units, see quant/superblock
// plane 2  fifths   one word per unit, bit i the fifth bit of column i
// source   GGUF block Q5_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack, quant/superblock

fn dequantize_word(word: u32, fifth: u32, scales: vec2<f32>) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        scales.x * (unpack_low(word) + unpack_fifth(fifth)) - scales.y,
        scales.x * (unpack_high(word) + unpack_fifth(fifth >> 4u)) - scales.y,
    );
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let unit = octet >> 2u;
    let fifth = plane_word(params.plane_2 + unit) >> ((octet & 3u) << 3u);
    return dequantize_word(plane_word(octet), fifth, superblock_scales(unit));
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let words = weight[unit];
    let fifth = plane_word(params.plane_2 + unit);
    let scales = superblock_scales(unit);
    let a = dequantize_word(words.x, fifth, scales);
    let b = dequantize_word(words.y, fifth >> 8u, scales);
    let c = dequantize_word(words.z, fifth >> 16u, scales);
    let d = dequantize_word(words.w, fifth >> 24u, scales);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}
