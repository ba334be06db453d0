// weight = an IEEE 754 binary16 number
//
// plane 0  values  16 words per unit of 32 columns, two columns in a word, the first in the low
//                  half; a row is padded with zeros to whole units
// source   IEEE 754-2019, 3.4
// uses     half, quant/pairs

fn dequantize_pairs(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(
        half_to_float(words.x & 0xffffu),
        half_to_float(words.x >> 16u),
        half_to_float(words.y & 0xffffu),
        half_to_float(words.y >> 16u),
    );
}
