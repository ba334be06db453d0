// weight = d * q, q a signed byte, one f32 d for a row
//
// plane 0  quants  8 words per unit of 32 columns, byte i of word w is column 4w + i; a row is
//                  padded with zeros to whole units
// plane 1  scales  one word per row
// source   compressed-tensors, format int-quantized
// uses     quant/unpack

// Signed bytes as unsigned ones, 128 more.
const SIGN = 0x80808080u;

fn row_scale(unit: u32) -> u32 {
    return plane_word(plane_start(1u) + unit / params.units);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = bitcast<f32>(row_scale(octet >> 2u));
    return array<vec4<f32>, 2>(
        scale * (spread(plane_word(2u * octet) ^ SIGN) - 128.0),
        scale * (spread(plane_word(2u * octet + 1u) ^ SIGN) - 128.0),
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;

struct Unit {
    first: vec4<u32>,
    last: vec4<u32>,
    scale: u32,
}

fn load_unit(unit: u32) -> Unit {
    return Unit(plane_row(2u * unit), plane_row(2u * unit + 1u), row_scale(unit));
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let word = word_at(select(unit.first, unit.last, quad >= 4u), quad);
    return lift(word, 0xffffu, SIGN & 0xffffu, 128.0);
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return bitcast<f32>(unit.scale) * (first + last);
}
