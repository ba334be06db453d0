// weight = d * (q - 1), q of 2 bits, one half d for 256 columns
//
// plane 0  quants  64 bytes per 8 units, see quant/bytes
// plane 1  supers  one half per 8 units
// source   GGUF block TQ2_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = pair_bytes(octet);
    let d = plane_half(plane_start(1u), octet >> 5u);
    return array<vec4<f32>, 2>(d * (spread(bytes.x) - 1.0), d * (spread(bytes.y) - 1.0));
}
