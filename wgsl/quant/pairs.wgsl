// What formats of 16-bit numbers share: two columns in a word, 16 words per unit of 32 columns
//
// expects  dequantize_pairs, the four numbers of two words, of the format; plane_row, as
//          quant/planes has it

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let words = plane_row(octet);
    return array<vec4<f32>, 2>(dequantize_pairs(words.xy), dequantize_pairs(words.zw));
}

const X_FACTORS = vec4<f32>(1.0);
const HAS_LOW = false;

struct Unit {
    octet_0: vec4<u32>,
    octet_1: vec4<u32>,
    octet_2: vec4<u32>,
    octet_3: vec4<u32>,
}

fn load_unit(unit: u32) -> Unit {
    let at = 4u * unit;
    return Unit(plane_row(at), plane_row(at + 1u), plane_row(at + 2u), plane_row(at + 3u));
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let first = select(unit.octet_0, unit.octet_1, (quad & 2u) != 0u);
    let last = select(unit.octet_2, unit.octet_3, (quad & 2u) != 0u);
    let octet = select(first, last, quad >= 4u);
    return dequantize_pairs(select(octet.xy, octet.zw, (quad & 1u) != 0u));
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return first + last;
}
