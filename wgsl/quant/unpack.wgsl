// What the formats of this folder share: reading the planes of a weight and spreading packed
// integers over four floats. Nothing here rounds.
//
// expects  weight: array<vec4<u32>>, all planes of a weight in one buffer, plane 0 first
// uses     half

// Word i of the buffer, wherever it lies in a 16-byte row.
fn plane_word(i: u32) -> u32 {
    return weight[i >> 2u][i & 3u];
}

// Half i of the plane that begins at word `start`.
fn plane_half(start: u32, i: u32) -> f32 {
    return half_to_float((plane_word(start + (i >> 1u)) >> ((i & 1u) << 4u)) & 0xffffu);
}

// The low nibble of each byte.
fn unpack_low(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u));
}

// The high nibble of each byte.
fn unpack_high(word: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(4u, 12u, 20u, 28u)) & vec4<u32>(15u));
}

// Each byte as a signed integer.
fn unpack_signed(word: u32) -> vec4<f32> {
    let left = vec4<i32>(bitcast<i32>(word)) << vec4<u32>(24u, 16u, 8u, 0u);
    return vec4<f32>(left >> vec4<u32>(24u));
}

// The four lowest bits, each worth sixteen: the fifth bit of four quants.
fn unpack_fifth(bits: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(bits) << vec4<u32>(4u, 3u, 2u, 1u)) & vec4<u32>(16u));
}

// The four lowest pairs of bits, each pair worth sixteen: bits five and six of four quants.
fn unpack_fifth_sixth(bits: u32) -> vec4<f32> {
    let placed = vec4<u32>(bits << 4u, bits << 2u, bits, bits >> 2u);
    return vec4<f32>(placed & vec4<u32>(48u));
}
