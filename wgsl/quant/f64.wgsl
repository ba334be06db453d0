// weight = an IEEE 754 binary64 number, rounded to f32
//
// plane 0  values  64 words per unit of 32 columns, two for a column, the low one first; a row is
//                  padded with zeros to whole units
// source   IEEE 754-2019, 3.4
// uses     quant/octets, narrow

fn dequantize_pair(row: u32) -> vec2<f32> {
    let words = plane_row(row);
    return vec2<f32>(float_from_f64(words.xy), float_from_f64(words.zw));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let row = 4u * octet;
    return array<vec4<f32>, 2>(
        vec4<f32>(dequantize_pair(row), dequantize_pair(row + 1u)),
        vec4<f32>(dequantize_pair(row + 2u), dequantize_pair(row + 3u)),
    );
}
