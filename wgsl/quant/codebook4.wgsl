// weight = d * book[q], q of 4 bits, one f32 d for 32 columns, a book of 16 f32 for the weight
//
// plane 0  quants  4 words per unit of 32 columns; nibble i of word w is column 8w + i
// plane 1  scales  one word per unit
// plane 2  book    16 words
// source   Dettmers et al. 2023, "QLoRA"; bitsandbytes, functional.py (quant_map)
// uses     quant/octets

fn numbers_of(half: u32) -> vec4<f32> {
    let at = plane_start(2u) + ((vec4<u32>(half) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u));
    return bitcast<vec4<f32>>(
        vec4<u32>(plane_word(at.x), plane_word(at.y), plane_word(at.z), plane_word(at.w)));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = bitcast<f32>(plane_word(plane_start(1u) + (octet >> 2u)));
    let word = plane_word(octet);
    return array<vec4<f32>, 2>(scale * numbers_of(word), scale * numbers_of(word >> 16u));
}
