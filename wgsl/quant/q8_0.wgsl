// weight = d * q, q a signed byte, one half d for 32 columns
//
// plane 0  quants  8 words per unit of 32 columns, byte i of word w is column 4w + i
// plane 1  scales  one half per unit
// source   GGUF block Q8_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack

// Signed bytes as unsigned ones, 128 more.
const Q8_0_SIGN = 0x80808080u;

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = plane_half(plane_start(1u), octet >> 2u);
    return array<vec4<f32>, 2>(
        scale * (spread(plane_word(2u * octet) ^ Q8_0_SIGN) - 128.0),
        scale * (spread(plane_word(2u * octet + 1u) ^ Q8_0_SIGN) - 128.0),
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;

struct Unit {
    first: vec4<u32>,
    last: vec4<u32>,
    scales: u32,
    at: u32,
}

fn load_unit(unit: u32) -> Unit {
    let scales = plane_word(plane_start(1u) + (unit >> 1u));
    return Unit(plane_row(2u * unit), plane_row(2u * unit + 1u), scales, unit);
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let word = word_at(select(unit.first, unit.last, quad >= 4u), quad);
    return lift(word, 0xffffu, Q8_0_SIGN & 0xffffu, 128.0);
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return half_of(unit.scales, unit.at) * (first + last);
}
