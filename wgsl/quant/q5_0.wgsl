// weight = d * (q - 16), q of 5 bits, one half d for 32 columns
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds the low bits of column
//                  4w + i in its low nibble, of column 16 + 4w + i in its high one
// plane 1  scales  one half per unit
// plane 2  fifths  one word per unit; bit 8i + j is the fifth bit of column 4j + i
// source   GGUF block Q5_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack

// The bytes of quads 2 * octet and 2 * octet + 1, column by column.
fn octet_bytes(octet: u32) -> vec2<u32> {
    let at = (octet & 0xfffffffcu) + ((octet & 1u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    let low = select(words, words >> vec2<u32>(4u), (octet & 2u) != 0u) & vec2<u32>(0x0f0f0f0fu);
    let fifths = plane_word(plane_start(2u) + (octet >> 2u)) >> ((octet & 3u) << 1u);
    return low | ((vec2<u32>(fifths << 4u, fifths << 3u)) & vec2<u32>(0x10101010u));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_bytes(octet);
    let scale = plane_half(plane_start(1u), octet >> 2u);
    return array<vec4<f32>, 2>(
        scale * (spread(bytes.x) - 16.0),
        scale * (spread(bytes.y) - 16.0),
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;
const ZERO_POINT = 16;
const HALF_SCALES = false;

struct Unit {
    words: vec4<u32>,
    fifths: u32,
    scales: u32,
    at: u32,
}

fn load_unit(unit: u32) -> Unit {
    let scales = plane_word(plane_start(1u) + (unit >> 1u));
    return Unit(plane_row(unit), plane_word(plane_start(2u) + unit), scales, unit);
}

fn quad_bytes(unit: Unit, quad: u32) -> u32 {
    let low = (word_at(unit.words, quad) >> (quad & 4u)) & 0x0f0f0f0fu;
    return low | (((unit.fifths >> quad) << 4u) & 0x10101010u);
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    return lift(quad_bytes(unit, quad), 0xffffu, 0u, 16.0);
}

fn scale_product(unit: Unit, place: u32, product: vec2<f32>, x_sum: f32) -> f32 {
    return half_of(unit.scales, unit.at) * product.x;
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return scale_product(unit, place, vec2<f32>(first + last, 0.0), x_sum);
}
