// weight = d * (scale - 32) * (q - 4), q of 3 bits; scale of 6 bits for 16 columns, one half d for
// 256
//
// Every product is exact in f32: nothing rounds.
//
// plane 0  quants  64 bytes per 8 units, the low two bits, see quant/bytes
// plane 1  tops    32 bytes per 8 units; bit u of byte i is the third bit of column i of unit u
// plane 2  scales  12 bytes per 8 units: the low 4 bits of scale i in nibble i / 8 of byte i % 8,
//                  the others in pair i / 4 of byte 8 + i % 4
// plane 3  supers  one half per 8 units
// source   GGUF block Q3_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/octets, quant/bytes

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let block = octet >> 5u;
    let tops_at = plane_start(1u) + 8u * block + ((octet & 3u) << 1u);
    let tops = vec2<u32>(plane_word(tops_at), plane_word(tops_at + 1u));
    let unit = vec2<u32>((octet >> 2u) & 7u);
    let bytes = pair_bytes(octet) | (((tops >> unit) & vec2<u32>(0x01010101u)) << vec2<u32>(2u));
    let i = (octet >> 1u) & 15u;
    let low = plane_byte(plane_start(2u), 12u * block + (i & 7u)) >> ((i >> 3u) << 2u);
    let high = plane_byte(plane_start(2u), 12u * block + 8u + (i & 3u)) >> ((i >> 2u) << 1u);
    let scale = f32((low & 15u) | ((high & 3u) << 4u)) - 32.0;
    let d = plane_half(plane_start(3u), block) * scale;
    return array<vec4<f32>, 2>(d * (spread(bytes.x) - 4.0), d * (spread(bytes.y) - 4.0));
}
