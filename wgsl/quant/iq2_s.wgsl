// weight = d * (scale + 0.5) / 4 * entry, with signs; scale of 4 bits for 16 columns, one half d for
// 256
//
// plane 0  quants   64 bytes per 8 units: for 8 columns a byte of 32 that points into the codebook,
//                   and one of 32 of signs
// plane 1  scales   16 bytes per 8 units: for 8 columns two bits more to point, of 8 bytes; then
//                   scales
// plane 2  supers   one half per 8 units
// plane 3  codebook 1024 entries of 8 columns
// source   GGUF block IQ2_S, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/entries, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let place = octet & 31u;
    let low = plane_byte(0u, 64u * block + place);
    let signs = plane_byte(0u, 64u * block + 32u + place);
    let tops = plane_byte(plane_start(1u), 16u * block + (place >> 2u)) >> ((place & 3u) << 1u);
    let scale = f32(plane_nibble(plane_start(1u), 32u * block + 16u + (place >> 1u))) + 0.5;
    let d = plane_half(plane_start(2u), block) * scale * 0.25;
    return signed_octet(d, entry_8(plane_start(3u), low | ((tops & 3u) << 8u)), signs);
}
