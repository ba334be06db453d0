// Words whose unsigned order is the order of floats, -0 before +0, and the floats of words.
//
// largest_word(value)   for the largest of several: NaN is behind all numbers
// smallest_word(value)  for the smallest: NaN is before all numbers
// extreme_float(word)   of either

fn largest_word(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let word = select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
    return select(word, 0xffffffffu, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn smallest_word(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let word = select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
    return select(word, 0u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn extreme_float(word: u32) -> f32 {
    return bitcast<f32>(select(~word, word ^ 0x80000000u, word >= 0x80000000u));
}
