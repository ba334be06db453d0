// How formats read whole numbers of 16 and 32 bits: weight = d * q of signed ones, else d * q + m
//
// plane 0  quants   numbers of BITS bits, one behind another, low bits first; a row is padded to
//                   whole units
// plane 1  scales   one float per row with BY_ROW, else per unit of 32 columns
// plane 2  offsets  the same, where numbers are from 0 on
// expects  BITS, SIGNED and BY_ROW, of the format; plane_word and plane_start, as quant/planes has
//          them; units in Params
// uses     quant/octets

fn wide_number(i: u32) -> f32 {
    if (BITS == 16u) {
        let bits = plane_word(i >> 1u) << (16u - ((i & 1u) << 4u));
        return select(f32(bits >> 16u), f32(bitcast<i32>(bits) >> 16u), SIGNED);
    }
    let bits = plane_word(i);
    return select(f32(bits), f32(bitcast<i32>(bits)), SIGNED);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let group = select(octet >> 2u, octet / (4u * params.units), BY_ROW);
    let scale = bitcast<f32>(plane_word(plane_start(1u) + group));
    var offset = 0.0;
    if (!SIGNED) {
        offset = bitcast<f32>(plane_word(plane_start(2u) + group));
    }
    let i = 8u * octet;
    let first = vec4<f32>(wide_number(i), wide_number(i + 1u), wide_number(i + 2u),
        wide_number(i + 3u));
    let last = vec4<f32>(wide_number(i + 4u), wide_number(i + 5u), wide_number(i + 6u),
        wide_number(i + 7u));
    return array<vec4<f32>, 2>(scale * first + offset, scale * last + offset);
}
