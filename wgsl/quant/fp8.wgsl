// How formats of floats of 8 bits are read: weight = d * q, one f32 d for 128 columns of a row
//
// plane 0  quants  8 words per unit of 32 columns, byte i of word w is column 4w + i; a row is
//                  padded with zeros to whole units
// plane 1  scales  one word per 4 units of a row, its last ones may be fewer
// source   Micikevicius et al. 2022, "FP8 formats for deep learning"
// expects  floats_of, the floats of the four bytes of a word, of the format
// uses     quant/unpack

fn group_scale(unit: u32) -> u32 {
    let row = unit / params.units;
    let group = (unit - row * params.units) >> 2u;
    return plane_word(plane_start(1u) + row * ((params.units + 3u) >> 2u) + group);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = bitcast<f32>(group_scale(octet >> 2u));
    return array<vec4<f32>, 2>(
        scale * floats_of(plane_word(2u * octet)),
        scale * floats_of(plane_word(2u * octet + 1u)),
    );
}

const X_FACTORS = vec4<f32>(1.0);
const HAS_LOW = false;

struct Unit {
    first: vec4<u32>,
    last: vec4<u32>,
    scale: u32,
}

fn load_unit(unit: u32) -> Unit {
    return Unit(plane_row(2u * unit), plane_row(2u * unit + 1u), group_scale(unit));
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    return floats_of(word_at(select(unit.first, unit.last, quad >= 4u), quad));
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return bitcast<f32>(unit.scale) * (first + last);
}
