// weight = d * (q - 1), q of 2 bits, one f32 d for a row
//
// plane 0  quants  2 words per unit of 32 columns; bits 2i and 2i + 1 of word w are column 16w + i
// plane 1  scales  one word per row
// source   Ma et al. 2024, "The Era of 1-bit LLMs"
// uses     quant/bits, quant/octets

const BITS = 2u;

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = bitcast<f32>(plane_word(plane_start(1u) + octet / (4u * params.units)));
    let numbers = octet_numbers(octet);
    return array<vec4<f32>, 2>(scale * (numbers[0] - 1.0), scale * (numbers[1] - 1.0));
}
