// What formats share whose quants of 4 bits point into a table of 16 numbers
//
// levels        the numbers of four bytes, of a table of signed bytes
// octet_nibbles the quants of 8 columns as bytes, where a unit has 16 bytes of them: column i in the
//               low nibble of byte i, column 16 + i in the high one
//
// expects  plane_word, as quant/planes has it

fn level(table: vec4<u32>, index: u32) -> f32 {
    let word = table[(index >> 2u) & 3u] >> ((index & 3u) << 3u);
    return f32(bitcast<i32>(word << 24u) >> 24u);
}

fn levels(table: vec4<u32>, bytes: u32) -> vec4<f32> {
    return vec4<f32>(
        level(table, bytes),
        level(table, bytes >> 8u),
        level(table, bytes >> 16u),
        level(table, bytes >> 24u),
    );
}

fn octet_nibbles(octet: u32) -> vec2<u32> {
    let at = (octet & 0xfffffffcu) + ((octet & 1u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    return (words >> vec2<u32>((octet & 2u) << 1u)) & vec2<u32>(0x0f0f0f0fu);
}

// The levels of IQ4_NL and IQ4_XS: -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69,
// 89, 113.
const IQ4 = vec4<u32>(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
