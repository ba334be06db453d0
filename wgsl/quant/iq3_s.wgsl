// weight = d * (2 * scale + 1) * entry, with signs; scale of 4 bits for 32 columns, one half d for
// 256
//
// plane 0  quants   108 bytes per 8 units: for 4 columns one of 64 bytes that points into the
//                   codebook, and a bit more of 8 bytes; for 8 columns one of 32 bytes of signs;
//                   4 bytes of scales
// plane 1  supers   one half per 8 units
// plane 2  codebook 512 entries of 4 columns
// source   GGUF block IQ3_S, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let place = octet & 31u;
    let at = 108u * block;
    let low = vec2<u32>(plane_byte(0u, at + 2u * place), plane_byte(0u, at + 2u * place + 1u));
    let tops = plane_byte(0u, at + 64u + (place >> 2u)) >> ((place & 3u) << 1u);
    let indices = low | vec2<u32>((tops & 1u) << 8u, (tops & 2u) << 7u);
    let signs = plane_byte(0u, at + 72u + place);
    let scale = f32(2u * plane_nibble(0u, 2u * at + 208u + (place >> 2u)) + 1u);
    let d = plane_half(plane_start(1u), block) * scale;
    let book = plane_start(2u);
    return signed_octet(d, vec2<u32>(entry_4(book, indices.x), entry_4(book, indices.y)), signs);
}
