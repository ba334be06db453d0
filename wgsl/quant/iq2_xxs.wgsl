// weight = d * (scale + 0.5) / 4 * entry, with signs; scale of 4 bits for 32 columns, one half d for
// 256
//
// plane 0  quants   2 words per unit: 4 bytes that point into the codebook; 4 times 7 signs, and
//                   above them the scale
// plane 1  supers   one half per 8 units
// plane 2  codebook 256 entries of 8 columns
// source   GGUF block IQ2_XXS, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let unit = octet >> 2u;
    let index = plane_byte(0u, 8u * unit + (octet & 3u));
    let word = plane_word(2u * unit + 1u);
    let scale = plane_half(plane_start(1u), unit >> 3u) * (f32(word >> 28u) + 0.5) * 0.25;
    let signs = even_signs((word >> (7u * (octet & 3u))) & 127u);
    return signed_octet(scale, entry_8(plane_start(2u), index), signs);
}
