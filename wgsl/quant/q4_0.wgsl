// weight = d * (q - 8), q of 4 bits, one half d for 32 columns
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds column 4w + i in its low
//                  nibble and column 16 + 4w + i in its high one
// plane 1  scales  one half per unit
// source   GGUF block Q4_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack

// The bytes of quads 2 * octet and 2 * octet + 1, column by column.
fn octet_bytes(octet: u32) -> vec2<u32> {
    let at = (octet & 0xfffffffcu) + ((octet & 1u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    return select(words, words >> vec2<u32>(4u), (octet & 2u) != 0u) & vec2<u32>(0x0f0f0f0fu);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_bytes(octet);
    let scale = plane_half(plane_start(1u), octet >> 2u);
    return array<vec4<f32>, 2>(
        scale * (spread(bytes.x) - 8.0),
        scale * (spread(bytes.y) - 8.0),
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;
const ZERO_POINT = 8;
const HALF_SCALES = false;

struct Unit {
    words: vec4<u32>,
    scales: u32,
    at: u32,
}

fn load_unit(unit: u32) -> Unit {
    return Unit(plane_row(unit), plane_word(plane_start(1u) + (unit >> 1u)), unit);
}

fn quad_bytes(unit: Unit, quad: u32) -> u32 {
    return (word_at(unit.words, quad) >> (quad & 4u)) & 0x0f0f0f0fu;
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let high = quad >= 4u;
    let zero = select(8.0, 128.0, high);
    return lift(word_at(unit.words, quad), select(0x0f0fu, 0xf0f0u, high), 0u, zero);
}

fn scale_product(unit: Unit, place: u32, product: vec2<f32>, x_sum: f32) -> f32 {
    return half_of(unit.scales, unit.at) * product.x;
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return scale_product(unit, place, vec2<f32>(first + 0.0625 * last, 0.0), x_sum);
}
