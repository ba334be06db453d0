// weight = d * (2 * scale + 1) * (entry - 1 ± 1 / 8), the sign for 8 columns, scale of 3 bits for 16,
// one half d for 256
//
// plane 0  quants   56 bytes per 8 units: for 8 columns one of 32 bytes that points into the
//                   codebook, and one of 32 nibbles of 3 bits more and the sign; 4 halves of 4
//                   times a scale, and in their highest bits d
// plane 1  codebook 2048 entries of 8 columns
// source   GGUF block IQ1_M, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let place = octet & 31u;
    let first = plane_word(14u * block + 12u);
    let last = plane_word(14u * block + 13u);
    let low = ((first >> 12u) & 15u) | ((first >> 24u) & 0xf0u);
    let high = ((last >> 12u) & 15u) | ((last >> 24u) & 0xf0u);
    let nibble = plane_nibble(0u, 112u * block + 64u + place);
    let index = plane_byte(0u, 56u * block + place) | ((nibble & 7u) << 8u);
    let entry = entry_8(plane_start(1u), index);
    // Four halves of two words each have the scales of 8 octets.
    let scales = select(first, last, place >= 16u) >> ((place & 8u) << 1u);
    let scale = (scales >> (3u * ((place >> 1u) & 3u))) & 7u;
    let d = low_half(low | (high << 8u)) * f32(2u * scale + 1u);
    let zero = select(0.875, 1.125, (nibble & 8u) != 0u);
    return array<vec4<f32>, 2>(d * (spread(entry.x) - zero), d * (spread(entry.y) - zero));
}
