// weight = d * scale * q - dmin * low, q of 2 bits; scale and low of 4 bits for 16 columns, two
// halves d and dmin for 256
//
// Both products are exact in f32, so the subtraction alone rounds.
//
// plane 0  quants  64 bytes per 8 units, see quant/bytes
// plane 1  scales  16 bytes per 8 units: scale in the low nibble, low in the high one
// plane 2  supers  one word per 8 units, d in the low half, dmin in the high half
// source   GGUF block Q2_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = pair_bytes(octet);
    let pair = plane_byte(plane_start(1u), octet >> 1u);
    let supers = word_halves(plane_word(plane_start(2u) + (octet >> 5u)));
    let scales = supers * vec2<f32>(f32(pair & 15u), f32(pair >> 4u));
    return array<vec4<f32>, 2>(
        scales.x * spread(bytes.x) - scales.y,
        scales.x * spread(bytes.y) - scales.y,
    );
}
