// octet_numbers(octet)  the numbers of 8 columns, from 0
//
// Plane 0 has numbers of BITS bits, 2, 3, 4 or 8, one behind another, the lowest bits first.
//
// expects  BITS, of the format; plane_word, as quant/planes has it

fn octet_numbers(octet: u32) -> array<vec4<f32>, 2> {
    let byte = octet * BITS;
    let shift = (byte & 3u) << 3u;
    let next = plane_word((byte >> 2u) + 1u);
    // No shift by 32, which would be one by 0.
    let low = (plane_word(byte >> 2u) >> shift) | ((next << 1u) << (31u - shift));
    let high = select(low >> ((4u * BITS) & 31u), next, BITS == 8u);
    let places = vec4<u32>(0u, BITS, 2u * BITS, 3u * BITS);
    let mask = vec4<u32>((1u << BITS) - 1u);
    return array<vec4<f32>, 2>(
        vec4<f32>((vec4<u32>(low) >> places) & mask),
        vec4<f32>((vec4<u32>(high) >> places) & mask),
    );
}
