// weight = d * q, q a float of 4 bits (E2M1), one f32 d for a row
//
// plane 0  quants  4 words per unit of 32 columns; nibble i of word w is column 8w + i
// plane 1  scales  one word per row
// source   Open Compute Project 2023, "OCP Microscaling Formats (MX)", for the numbers
// uses     quant/octets, quant/levels, quant/nibbles

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let d = bitcast<f32>(plane_word(plane_start(1u) + octet / (4u * params.units)));
    let word = plane_word(octet);
    return array<vec4<f32>, 2>(
        d * (0.5 * levels(E2M1, nibbles(word))),
        d * (0.5 * levels(E2M1, nibbles(word >> 16u))),
    );
}
