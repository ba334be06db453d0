// weight = d * (q - zero), q of 4 bits, a half d and a zero point for 32 columns
//
// Every product is exact in f32 (11 + 5 bits): nothing rounds.
//
// plane 0  quants  4 words per unit of 32 columns; nibble i of word w is column 8w + i
// plane 1  scales  one half per unit
// plane 2  zeros   one byte per unit, 0 to 16
// source   GPTQ and AWQ, as AutoGPTQ (nn_modules/qlinear) and AutoAWQ (modules/linear/gemm) store them
// uses     quant/unpack

// Four nibbles as bytes.
fn nibbles(half: u32) -> u32 {
    let pairs = (half | (half << 8u)) & 0x00ff00ffu;
    return (pairs | (pairs << 4u)) & 0x0f0f0f0fu;
}

fn zero_of(word: u32, unit: u32) -> f32 {
    return f32((word >> ((unit & 3u) << 3u)) & 0xffu);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let unit = octet >> 2u;
    let word = plane_word(octet);
    let scale = plane_half(plane_start(1u), unit);
    let zero = zero_of(plane_word(plane_start(2u) + (unit >> 2u)), unit);
    return array<vec4<f32>, 2>(
        scale * (spread(nibbles(word & 0xffffu)) - zero),
        scale * (spread(nibbles(word >> 16u)) - zero),
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;

struct Unit {
    words: vec4<u32>,
    scales: u32,
    zeros: u32,
    at: u32,
}

fn load_unit(unit: u32) -> Unit {
    let scales = plane_word(plane_start(1u) + (unit >> 1u));
    return Unit(plane_row(unit), scales, plane_word(plane_start(2u) + (unit >> 2u)), unit);
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let half = (unit.words[quad >> 1u] >> ((quad & 1u) << 4u)) & 0xffffu;
    return lift(nibbles(half), 0xffffu, 0u, zero_of(unit.zeros, unit.at));
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return half_of(unit.scales, unit.at) * (first + last);
}
