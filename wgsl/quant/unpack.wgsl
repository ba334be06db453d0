// What the formats of this folder share: reading the planes of a weight, and spreading packed
// integers over four floats. Nothing here rounds.
//
// plane_half                a half of a plane
// low_bytes, high_bytes     the low, the high nibble of each byte, as bytes
// spread                    the four bytes of a word as floats
// lift                      the four bytes of a word, masked, as floats with known factors: one
//                           integer operation for a number, where spread takes three
//
// expects  plane_row, plane_word, plane_start, as quant/planes has them, and low_half and
//          word_halves of quant/halves or quant/halves_direct

// Half i of the plane that begins at word `start`.
fn plane_half(start: u32, i: u32) -> f32 {
    return low_half((plane_word(start + (i >> 1u)) >> ((i & 1u) << 4u)) & 0xffffu);
}

fn low_bytes(word: u32) -> u32 {
    return word & 0x0f0f0f0fu;
}

fn high_bytes(word: u32) -> u32 {
    return (word >> 4u) & 0x0f0f0f0fu;
}

fn spread(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}

// LIFT_FACTORS * (byte & mask) - LIFT_FACTORS * zero for each byte, where `mask` repeats in the two
// low bytes: the bits are the mantissa of a number from 2^23, which is then taken away, exactly.
// The factors are taken out of x instead: X_FACTORS of a format says so.
const LIFT_FACTORS = vec4<f32>(1.0, 256.0, 1.0, 256.0);
const UNLIFT_FACTORS = vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);

fn lift(word: u32, mask: u32, zero: f32) -> vec4<f32> {
    let low = (word & 0xffffu) | 0x4b000000u;
    let high = (word >> 16u) | 0x4b000000u;
    let odd = (mask & 0x00ffu) | 0x4b000000u;
    let even = (mask & 0xff00u) | 0x4b000000u;
    let bits = vec4<u32>(low, low, high, high) & vec4<u32>(odd, even, odd, even);
    return bitcast<vec4<f32>>(bits) - (LIFT_FACTORS * zero + 8388608.0);
}
