// raw_byte(at), raw_half(at), raw_word(at)  little-endian values that begin at any byte of `raw`
//
// expects  raw: array<u32>, params.raw_offset in words

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

// Words of quants: byte i of the result holds the low nibbles of byte i of `low` and `high`.
fn pair_low(low: u32, high: u32) -> u32 {
    return (low & 0x0f0f0f0fu) | ((high & 0x0f0f0f0fu) << 4u);
}

// The same of their high nibbles.
fn pair_high(low: u32, high: u32) -> u32 {
    return ((low >> 4u) & 0x0f0f0f0fu) | (high & 0xf0f0f0f0u);
}
