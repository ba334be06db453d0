// raw_byte(at), raw_half(at), raw_word(at)  little-endian values that begin at any byte of `raw`
//
// expects  raw: array<u32>, params.raw_offset in words
// turns  32

fn load_raw(i: u32) -> u32 { return raw[i]; }

fn raw_word(at: u32) -> u32 {
    let byte = 4u * params.raw_offset + at;
    let word = byte >> 2u;
    let shift = (byte & 3u) << 3u;
    if (shift == 0u) {
        return load_raw(word);
    }
    return (load_raw(word) >> shift) | (load_raw(word + 1u) << (32u - shift));
}

fn raw_byte(at: u32) -> u32 {
    let byte = 4u * params.raw_offset + at;
    return (load_raw(byte >> 2u) >> ((byte & 3u) << 3u)) & 0xffu;
}

fn raw_half(at: u32) -> u32 {
    return raw_byte(at) | (raw_byte(at + 1u) << 8u);
}

// A word whose bit i is the fifth bit of column i, as bit 8i + j for column 4j + i.
fn transpose_fifths(word: u32) -> u32 {
    var bits = 0u;
    for (var column = 0u; column < 32u; column++) {
        bits |= ((word >> column) & 1u) << (8u * (column & 3u) + (column >> 2u));
    }
    return bits;
}

// A word of quants of a unit: the nibbles of 4 bytes from `at` in the low nibbles of the result,
// those of 4 bytes from `at + 16` in the high ones. `high` says which nibble of the source.
fn pair_nibbles(at: u32, high: bool) -> u32 {
    let shift = select(0u, 4u, high);
    let first = (raw_word(at) >> shift) & 0x0f0f0f0fu;
    let last = (raw_word(at + 16u) >> shift) & 0x0f0f0f0fu;
    return first | (last << 4u);
}
