// weight = d * (scale + 0.5) / 2 * entry, with signs; scale of 4 bits for 32 columns, one half d for
// 256
//
// plane 0  quants   96 bytes per 8 units: for 4 columns one of 64 bytes that points into the
//                   codebook; for a unit a word of 4 times 7 signs, and above them the scale
// plane 1  supers   one half per 8 units
// plane 2  codebook 256 entries of 4 columns
// source   GGUF block IQ3_XXS, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let place = octet & 31u;
    let at = 96u * block + 2u * place;
    let indices = vec2<u32>(plane_byte(0u, at), plane_byte(0u, at + 1u));
    let word = plane_word(24u * block + 16u + (place >> 2u));
    let scale = plane_half(plane_start(1u), block) * (f32(word >> 28u) + 0.5) * 0.5;
    let signs = even_signs((word >> (7u * (octet & 3u))) & 127u);
    let book = plane_start(2u);
    return signed_octet(scale, vec2<u32>(entry_4(book, indices.x), entry_4(book, indices.y)), signs);
}
