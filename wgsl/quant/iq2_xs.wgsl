// weight = d * (scale + 0.5) / 4 * entry, with signs; scale of 4 bits for 16 columns, one half d for
// 256
//
// plane 0  quants   one half per 8 columns: 9 bits point into the codebook, 7 are signs
// plane 1  scales   8 bytes per 8 units
// plane 2  supers   one half per 8 units
// plane 3  codebook 512 entries of 8 columns
// source   GGUF block IQ2_XS, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let quant = (plane_word(octet >> 1u) >> ((octet & 1u) << 4u)) & 0xffffu;
    let scale = f32(plane_nibble(plane_start(1u), octet >> 1u)) + 0.5;
    let d = plane_half(plane_start(2u), octet >> 5u) * scale * 0.25;
    return signed_octet(d, entry_8(plane_start(3u), quant & 511u), even_signs(quant >> 9u));
}
