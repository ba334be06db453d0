// How formats read weights of 4 bits with a step and an offset: weight = d * (q - ZERO) + m, floats d and
// m for 32 columns
//
// With scales of 20 bits, such as halves, d * (q - ZERO) is exact in f32, so a fused multiply-add rounds
// as two steps do.
//
// plane 0  quants   4 words per unit of 32 columns; nibble i of word w is column 8w + i
// plane 1  scales   one float per unit
// plane 2  offsets  one float per unit
// expects  ZERO, of the format; plane_word, plane_row and plane_start, as quant/planes has them
// uses     quant/unpack

// Four nibbles as bytes.
fn nibbles(half: u32) -> u32 {
    let pairs = (half | (half << 8u)) & 0x00ff00ffu;
    return (pairs | (pairs << 4u)) & 0x0f0f0f0fu;
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let unit = octet >> 2u;
    let word = plane_word(octet);
    let scale = bitcast<f32>(plane_word(plane_start(1u) + unit));
    let offset = bitcast<f32>(plane_word(plane_start(2u) + unit));
    return array<vec4<f32>, 2>(
        scale * (spread(nibbles(word & 0xffffu)) - ZERO) + offset,
        scale * (spread(nibbles(word >> 16u)) - ZERO) + offset,
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = true;

struct Unit {
    words: vec4<u32>,
    scale: u32,
    offset: u32,
}

fn load_unit(unit: u32) -> Unit {
    return Unit(plane_row(unit), plane_word(plane_start(1u) + unit), plane_word(plane_start(2u) + unit));
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let half = (unit.words[quad >> 1u] >> ((quad & 1u) << 4u)) & 0xffffu;
    return lift(nibbles(half), 0xffffu, 0u, ZERO);
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return bitcast<f32>(unit.scale) * (first + last) + bitcast<f32>(unit.offset) * x_sum;
}
