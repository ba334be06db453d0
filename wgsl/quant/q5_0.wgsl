// weight = d * (q - 16), q of 5 bits, one half d for 32 columns
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds the low bits of column
//                  4w + i in its low nibble, of column 16 + 4w + i in its high one
// plane 1  scales  one half per unit
// plane 2  fifths  one word per unit; bit 8i + j is the fifth bit of column 4j + i
// source   GGUF block Q5_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

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
    let scale = plane_half(params.plane_1, octet >> 2u);
    return array<vec4<f32>, 2>(
        scale * (spread(bytes.x) - 16.0),
        scale * (spread(bytes.y) - 16.0),
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
        lift(bytes[0], 0xffffu, 16.0),
        lift(bytes[1], 0xffffu, 16.0),
        lift(bytes[2], 0xffffu, 16.0),
        lift(bytes[3], 0xffffu, 16.0),
        lift(bytes[4], 0xffffu, 16.0),
        lift(bytes[5], 0xffffu, 16.0),
        lift(bytes[6], 0xffffu, 16.0),
        lift(bytes[7], 0xffffu, 16.0),
    );
}

fn unit_scales(unit: u32) -> vec4<f32> {
    return vec4<f32>(plane_half(params.plane_1, unit), 0.0, 0.0, 0.0);
}

fn combine(scales: vec4<f32>, first: vec4<f32>, last: vec4<f32>, x_sum: f32) -> f32 {
    return scales.x * (unlift(first) + unlift(last));
}
