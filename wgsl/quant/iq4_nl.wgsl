// weight = d * level(q), q of 4 bits, one half d for 32 columns
//
// plane 0  quants  16 bytes per unit, see quant/levels
// plane 1  scales  one half per unit
// source   GGUF block IQ4_NL, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/levels

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_nibbles(octet);
    let d = plane_half(plane_start(1u), octet >> 2u);
    return array<vec4<f32>, 2>(d * levels(IQ4, bytes.x), d * levels(IQ4, bytes.y));
}
