// What the formats of this folder share: reading the planes of a weight, and spreading packed
// integers over four floats. Nothing here rounds.
//
// plane_half                a half of a plane
// half_of                   a half of a word of a plane
// word_at                   a word of four
// low_bytes, high_bytes     the low, the high nibble of each byte, as bytes
// spread                    the four bytes of a word as floats
// lift                      the four bytes of a word, masked, as floats with known factors: one
//                           integer operation for a number, where spread takes three
//
// A Unit holds words as they lie in memory: a kernel asks for the next units before it works on
// these, and whatever touched the words would wait for them. `combine` makes numbers of the scales,
// and so does `scale_product`, for a whole unit at once: in formats of 4 to 6 bits, where
// `quad_bytes` has the quants of four columns as bytes, which stand for numbers less by ZERO_POINT.
// Its product is that of the unit, and zero; with HALF_SCALES that of the first and that of the last
// 16 columns, which have a scale each. `place` is the unit's place among 8 where rows are
// superblocks of 8 units: a lane has the same in all rows and steps, so that what follows from it is
// worked out once.
//
// expects  plane_row, plane_word, plane_start, as quant/planes has them, and low_half and
//          word_halves of quant/halves or quant/halves_direct; units in Params

// Half i of the plane that begins at word `start`.
fn plane_half(start: u32, i: u32) -> f32 {
    return half_of(plane_word(start + (i >> 1u)), i);
}

// Half i of a plane, given the word that it lies in.
fn half_of(word: u32, i: u32) -> f32 {
    return low_half((word >> ((i & 1u) << 4u)) & 0xffffu);
}

// Word i % 4 of four. By choices: compilers keep a vector with an index in memory until they know the
// index, which takes them long.
fn word_at(words: vec4<u32>, i: u32) -> u32 {
    let pair = select(words.xy, words.zw, (i & 2u) != 0u);
    return select(pair.x, pair.y, (i & 1u) != 0u);
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

// LIFT_FACTORS * (byte & mask) - LIFT_FACTORS * zero for each byte, where `mask` and `flip` repeat
// in the two low bytes, and bits of `flip` count as inverted: the bits are the mantissa of a number
// from 2^23, which is then taken away, exactly. The factors are taken out of x instead: X_FACTORS
// of a format says so.
const LIFT_FACTORS = vec4<f32>(1.0, 256.0, 1.0, 256.0);
const UNLIFT_FACTORS = vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);

fn lift(word: u32, mask: u32, flip: u32, zero: f32) -> vec4<f32> {
    // 2^23, and a zero that the compiler cannot see: of (a & b) ^ c a GPU makes one operation, but
    // not with two numbers that it knows, for which an operation has no room.
    let base = 0x4b000000u + (params.units >> 31u);
    let odd = base ^ (flip & 0x00ffu);
    let even = base ^ (flip & 0xff00u);
    let high = word >> 16u;
    let bits = vec4<u32>(
        (word & (mask & 0x00ffu)) ^ odd,
        (word & (mask & 0xff00u)) ^ even,
        (high & (mask & 0x00ffu)) ^ odd,
        (high & (mask & 0xff00u)) ^ even,
    );
    return bitcast<vec4<f32>>(bits) - (LIFT_FACTORS * zero + 8388608.0);
}
