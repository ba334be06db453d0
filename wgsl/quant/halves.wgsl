// low_half(bits)     the f32 equal to the IEEE 754 binary16 in the low 16 bits of `bits`; the
//                    others are zero
// word_halves(word)  the f32s equal to the binary16 in the low and in the high half of `word`
//
// Exact for every bit pattern, and short for most. Devices may flush subnormals and take infinities
// for impossible: halves with the first or the last exponent, which few scales have, go the long
// way.
//
// uses  half

fn low_half(bits: u32) -> f32 {
    if (((bits + 0x0400u) & 0x7800u) == 0u) {
        return half_to_float(bits);
    }
    return unpack2x16float(bits).x;
}

fn word_halves(word: u32) -> vec2<f32> {
    let next = word + 0x04000400u;
    if ((next & 0x7800u) == 0u || (next & 0x78000000u) == 0u) {
        return vec2<f32>(half_to_float(word & 0xffffu), half_to_float(word >> 16u));
    }
    return unpack2x16float(word);
}
