// What formats share whose planes are ranges of bytes of a GGUF block of 256 columns
//
// plane_byte     a byte of a plane that begins at word `start`
// plane_nibble   half of a byte of a plane, the low one first
// pair_bytes     quants of 2 bits of 8 columns, as bytes: pair j of 32 bytes is 32 columns in a row,
//                and a block has 64 bytes of them in plane 0
//
// expects  plane_word, as quant/planes has it

fn plane_byte(start: u32, i: u32) -> u32 {
    return (plane_word(start + (i >> 2u)) >> ((i & 3u) << 3u)) & 255u;
}

fn plane_nibble(start: u32, i: u32) -> u32 {
    return (plane_word(start + (i >> 3u)) >> ((i & 7u) << 2u)) & 15u;
}

fn pair_bytes(octet: u32) -> vec2<u32> {
    let at = ((octet >> 4u) << 3u) + ((octet & 3u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    return (words >> vec2<u32>((octet >> 1u) & 6u)) & vec2<u32>(0x03030303u);
}
