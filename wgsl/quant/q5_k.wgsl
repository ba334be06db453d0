// weight = d * scale * q - dmin * low, q of 5 bits; scale and low of 6 bits for 32 columns, two
// halves d and dmin for 256
//
// Both products are exact in f32 (11 + 6 + 5 bits), so the subtraction alone rounds.
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds the low bits of column
//                  4w + i in its low nibble, of column 16 + 4w + i in its high one
// plane 1  headers 4 words per 8 units, see quant/superblock
// plane 2  fifths  one word per unit; bit 8i + j is the fifth bit of column 4j + i
// source   GGUF block Q5_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack, quant/superblock

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
    let scales = superblock_scales(superblock_header(octet >> 2u), octet >> 2u);
    return array<vec4<f32>, 2>(
        scales.x * spread(bytes.x) - scales.y,
        scales.x * spread(bytes.y) - scales.y,
    );
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = true;
const ZERO_POINT = 0;
const HALF_SCALES = false;

struct Unit {
    words: vec4<u32>,
    fifths: u32,
    header: vec4<u32>,
}

fn load_unit(unit: u32) -> Unit {
    let fifths = plane_word(plane_start(2u) + unit);
    return Unit(plane_row(unit), fifths, superblock_header(unit));
}

fn quad_bytes(unit: Unit, quad: u32) -> u32 {
    let low = (word_at(unit.words, quad) >> (quad & 4u)) & 0x0f0f0f0fu;
    return low | (((unit.fifths >> quad) << 4u) & 0x10101010u);
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    return lift(quad_bytes(unit, quad), 0xffffu, 0u, 0.0);
}

fn scale_product(unit: Unit, place: u32, product: vec2<f32>, x_sum: f32) -> f32 {
    let scales = superblock_scales(unit.header, place);
    return scales.x * product.x - scales.y * x_sum;
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return scale_product(unit, place, vec2<f32>(first + last, 0.0), x_sum);
}
