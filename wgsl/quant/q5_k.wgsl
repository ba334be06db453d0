// weight = d * scale * q - dmin * low, q of 5 bits; scale and low of 6 bits for 32 columns, two
// halves d and dmin for 256
//
// Both products are exact in f32 (11 + 6 + 5 bits), so the subtraction alone rounds.
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds the low bits of column
//                  4w + i in its low nibble, of column 16 + 4w + i in its high one
// plane 1  headers 4 words per 8 units, see quant/superblock
// plane 2  fifths  one word per unit; bit 8i + j is the fifth bit of column 4j + i
// source   GGUF block Q5_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack, quant/superblock

// The bytes of quads 2 * octet and 2 * octet + 1, column by column.
fn octet_bytes(octet: u32) -> vec2<u32> {
    let at = (octet & 0xfffffffcu) + ((octet & 1u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    let low = select(words, words >> vec2<u32>(4u), (octet & 2u) != 0u) & vec2<u32>(0x0f0f0f0fu);
    let fifths = plane_word(params.plane_2 + (octet >> 2u)) >> ((octet & 3u) << 1u);
    return low | ((vec2<u32>(fifths << 4u, fifths << 3u)) & vec2<u32>(0x10101010u));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_bytes(octet);
    let scales = superblock_scales(octet >> 2u);
    return array<vec4<f32>, 2>(
        scales.x * spread(bytes.x) - scales.y,
        scales.x * spread(bytes.y) - scales.y,
    );
}

fn unit_bytes(unit: u32) -> array<u32, 8> {
    let words = weight[unit];
    let fifths = plane_word(params.plane_2 + unit);
    return array<u32, 8>(
        low_bytes(words.x) | ((fifths << 4u) & 0x10101010u),
        low_bytes(words.y) | ((fifths << 3u) & 0x10101010u),
        low_bytes(words.z) | ((fifths << 2u) & 0x10101010u),
        low_bytes(words.w) | ((fifths << 1u) & 0x10101010u),
        high_bytes(words.x) | (fifths & 0x10101010u),
        high_bytes(words.y) | ((fifths >> 1u) & 0x10101010u),
        high_bytes(words.z) | ((fifths >> 2u) & 0x10101010u),
        high_bytes(words.w) | ((fifths >> 3u) & 0x10101010u),
    );
}

fn unpack(unit: u32) -> array<vec4<f32>, 8> {
    let bytes = unit_bytes(unit);
    return array<vec4<f32>, 8>(
        lift(bytes[0], 0xffffu, 0.0),
        lift(bytes[1], 0xffffu, 0.0),
        lift(bytes[2], 0xffffu, 0.0),
        lift(bytes[3], 0xffffu, 0.0),
        lift(bytes[4], 0xffffu, 0.0),
        lift(bytes[5], 0xffffu, 0.0),
        lift(bytes[6], 0xffffu, 0.0),
        lift(bytes[7], 0xffffu, 0.0),
    );
}

fn unit_scales(unit: u32) -> vec4<f32> {
    return vec4<f32>(superblock_scales(unit), 0.0, 0.0);
}

fn combine(scales: vec4<f32>, first: vec4<f32>, last: vec4<f32>, x_sum: f32) -> f32 {
    return scales.x * (unlift(first) + unlift(last)) - scales.y * x_sum;
}
