// weight = d * scale * q - dmin * low, q of 4 bits; scale and low of 6 bits for 32 columns, two
// halves d and dmin for 256
//
// Both products are exact in f32 (11 + 6 + 4 bits), so the subtraction alone rounds.
//
// plane 0  quants   4 words per unit of 32 columns; word w holds columns 8w to 8w + 7: column
//                   8w + i in the low nibble of byte i, column 8w + 4 + i in the high nibble
// plane 1  headers  4 words per 8 units, see quant/superblock
// source   GGUF block Q4_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack, quant/superblock

fn dequantize_word(word: u32, scales: vec2<f32>) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        scales.x * unpack_low(word) - scales.y,
        scales.x * unpack_high(word) - scales.y,
    );
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    return dequantize_word(plane_word(octet), superblock_scales(octet >> 2u));
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let words = weight[unit];
    let scales = superblock_scales(unit);
    let a = dequantize_word(words.x, scales);
    let b = dequantize_word(words.y, scales);
    let c = dequantize_word(words.z, scales);
    let d = dequantize_word(words.w, scales);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}
