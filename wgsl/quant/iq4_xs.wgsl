// weight = d * (scale - 32) * level(q), q of 4 bits; scale of 6 bits for 32 columns, one half d for
// 256
//
// plane 0  quants  16 bytes per unit, see quant/levels
// plane 1  headers 2 words per 8 units: d in the low half of the first, pair u of the high half the
//                  high bits of scale u; nibble u of the second its low bits
// source   GGUF block IQ4_XS, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/levels

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_nibbles(octet);
    let at = plane_start(1u) + 2u * (octet >> 5u);
    let header = plane_word(at);
    let unit = (octet >> 2u) & 7u;
    let low = (plane_word(at + 1u) >> (4u * unit)) & 15u;
    let high = (header >> (16u + 2u * unit)) & 3u;
    let d = half_of(header, 0u) * (f32(low | (high << 4u)) - 32.0);
    return array<vec4<f32>, 2>(d * levels(IQ4, bytes.x), d * levels(IQ4, bytes.y));
}
