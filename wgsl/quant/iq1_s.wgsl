// weight = d * (2 * scale + 1) * (entry - 1 ± 1 / 8), the sign and scale of 3 bits for 32 columns,
// one half d for 256
//
// plane 0  quants   48 bytes per 8 units: for 8 columns one of 32 bytes that points into the
//                   codebook; for a unit a half of 4 times 3 bits more, the scale, and the sign
// plane 1  supers   one half per 8 units
// plane 2  codebook 2048 entries of 8 columns
// source   GGUF block IQ1_S, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let place = octet & 31u;
    let unit = place >> 2u;
    let half = plane_word(12u * block + 8u + (unit >> 1u)) >> ((unit & 1u) << 4u);
    let tops = (half >> (3u * (place & 3u))) & 7u;
    let index = plane_byte(0u, 48u * block + place) | (tops << 8u);
    let entry = entry_8(plane_start(2u), index);
    let d = plane_half(plane_start(1u), block) * f32(2u * ((half >> 12u) & 7u) + 1u);
    let zero = select(0.875, 1.125, (half & 0x8000u) != 0u);
    return array<vec4<f32>, 2>(d * (spread(entry.x) - zero), d * (spread(entry.y) - zero));
}
