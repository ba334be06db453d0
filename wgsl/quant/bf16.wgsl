// weight = a bfloat16 number
//
// plane 0  values  16 words per unit of 32 columns, two columns in a word, the first in the low
//                  half; a row is padded with zeros to whole units
// source   the upper half of IEEE 754 binary32
// uses     half

fn dequantize_words(words: vec4<u32>) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        vec4<f32>(
            bfloat_to_float(words.x & 0xffffu), bfloat_to_float(words.x >> 16u),
            bfloat_to_float(words.y & 0xffffu), bfloat_to_float(words.y >> 16u),
        ),
        vec4<f32>(
            bfloat_to_float(words.z & 0xffffu), bfloat_to_float(words.z >> 16u),
            bfloat_to_float(words.w & 0xffffu), bfloat_to_float(words.w >> 16u),
        ),
    );
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    return dequantize_words(weight[octet]);
}

fn unpack(unit: u32) -> array<vec4<f32>, 8> {
    let a = dequantize_words(weight[4u * unit]);
    let b = dequantize_words(weight[4u * unit + 1u]);
    let c = dequantize_words(weight[4u * unit + 2u]);
    let d = dequantize_words(weight[4u * unit + 3u]);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}

fn unit_scales(unit: u32) -> vec4<f32> {
    return vec4<f32>(1.0, 0.0, 0.0, 0.0);
}

fn combine(scales: vec4<f32>, first: vec4<f32>, last: vec4<f32>, x_sum: f32) -> f32 {
    let sums = first + last;
    return (sums.x + sums.y) + (sums.z + sums.w);
}
