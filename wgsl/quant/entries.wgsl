// What formats share whose columns are entries of a codebook, with signs
//
// entry_8, entry_4  an entry of 8 magnitudes of a byte each, of 4; the codebook begins at word `start`
// even_signs        eight signs of seven: those that are negative are even in number
// signed_octet      magnitudes with the signs that the bits of a byte are, times a scale
//
// expects  plane_word, as quant/planes has it; spread, of quant/unpack

fn entry_8(start: u32, index: u32) -> vec2<u32> {
    return vec2<u32>(plane_word(start + 2u * index), plane_word(start + 2u * index + 1u));
}

fn entry_4(start: u32, index: u32) -> u32 {
    return plane_word(start + index);
}

fn even_signs(bits: u32) -> u32 {
    return bits | ((countOneBits(bits) & 1u) << 7u);
}

fn signed_octet(scale: f32, magnitudes: vec2<u32>, signs: u32) -> array<vec4<f32>, 2> {
    let bits = vec4<u32>(signs) >> vec4<u32>(0u, 1u, 2u, 3u);
    let first = 1.0 - 2.0 * vec4<f32>(bits & vec4<u32>(1u));
    let last = 1.0 - 2.0 * vec4<f32>((bits >> vec4<u32>(4u)) & vec4<u32>(1u));
    return array<vec4<f32>, 2>(
        scale * (first * spread(magnitudes.x)),
        scale * (last * spread(magnitudes.y)),
    );
}
