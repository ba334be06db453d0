// weight = d * q + m, q of 4 bits, two halves d and m for 32 columns
//
// d * q is exact in f32 (11 + 4 bits), so a fused multiply-add rounds as two steps do.
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds column 4w + i in its low
//                  nibble and column 16 + 4w + i in its high one
// plane 1  scales  one word per unit, d in the low half, m in the high half
// source   GGUF block Q4_1, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack

// The bytes of quads 2 * octet and 2 * octet + 1, column by column.
fn octet_bytes(octet: u32) -> vec2<u32> {
    let at = (octet & 0xfffffffcu) + ((octet & 1u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    return select(words, words >> vec2<u32>(4u), (octet & 2u) != 0u) & vec2<u32>(0x0f0f0f0fu);
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_bytes(octet);
    let scales = word_halves(plane_word(plane_start(1u) + (octet >> 2u)));
    return array<vec4<f32>, 2>(
        scales.x * spread(bytes.x) + scales.y,
        scales.x * spread(bytes.y) + scales.y,
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = true;
const ZERO_POINT = 0;
const HALF_SCALES = false;

struct Unit {
    words: vec4<u32>,
    scales: u32,
}

fn load_unit(unit: u32) -> Unit {
    return Unit(plane_row(unit), plane_word(plane_start(1u) + unit));
}

fn quad_bytes(unit: Unit, quad: u32) -> u32 {
    return (word_at(unit.words, quad) >> (quad & 4u)) & 0x0f0f0f0fu;
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let high = quad >= 4u;
    return lift(word_at(unit.words, quad), select(0x0f0fu, 0xf0f0u, high), 0u, 0.0);
}

fn scale_product(unit: Unit, place: u32, product: vec2<f32>, x_sum: f32) -> f32 {
    let scales = word_halves(unit.scales);
    return scales.x * product.x + scales.y * x_sum;
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return scale_product(unit, place, vec2<f32>(first + 0.0625 * last, 0.0), x_sum);
}
