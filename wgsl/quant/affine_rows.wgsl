// How formats read weights of BITS bits with a step and an offset for a row: weight = d * q + m
//
// With scales of 16 bits d * q is exact in f32, so a fused multiply-add rounds as two steps do.
//
// plane 0  quants   numbers of BITS bits from 0, one behind another, the lowest bits first
// plane 1  scales   one float per row
// plane 2  offsets  one float per row
// expects  BITS, of the format; plane_word and plane_start, as quant/planes has them; units in Params
// uses     quant/bits, quant/octets

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let row = octet / (4u * params.units);
    let numbers = octet_numbers(octet);
    let scale = bitcast<f32>(plane_word(plane_start(1u) + row));
    let offset = bitcast<f32>(plane_word(plane_start(2u) + row));
    return array<vec4<f32>, 2>(scale * numbers[0] + offset, scale * numbers[1] + offset);
}
