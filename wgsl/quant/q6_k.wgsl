// weight = d * scale * (q - 32), q of 6 bits; scale a signed byte for 16 columns, one half d for
// 256
//
// Every product is exact in f32 (11 + 7 + 5 bits): nothing rounds.
//
// plane 0  quants  4 words per unit of 32 columns; byte i of word w holds the low bits of column
//                  4w + i in its low nibble, of column 16 + 4w + i in its high one
// plane 1  tops    2 words per unit; bits 8i + 2j and 8i + 2j + 1 of word w are bits five and six
//                  of column 16w + 4j + i
// plane 2  scales  one half word per unit: the byte of its first, then of its last 16 columns
// plane 3  supers  one half per 8 units
// source   GGUF block Q6_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     quant/unpack

// The bytes of quads 2 * octet and 2 * octet + 1, column by column.
fn octet_bytes(octet: u32) -> vec2<u32> {
    let at = (octet & 0xfffffffcu) + ((octet & 1u) << 1u);
    let words = vec2<u32>(plane_word(at), plane_word(at + 1u));
    let low = select(words, words >> vec2<u32>(4u), (octet & 2u) != 0u) & vec2<u32>(0x0f0f0f0fu);
    let tops = plane_word(plane_start(1u) + (octet >> 1u)) >> ((octet & 1u) << 2u);
    return low | (vec2<u32>(tops << 4u, tops << 2u) & vec2<u32>(0x30303030u));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let bytes = octet_bytes(octet);
    let scales = unit_scales(octet >> 2u);
    let scale = select(scales.x, scales.y, (octet & 2u) != 0u);
    return array<vec4<f32>, 2>(
        scale * (spread(bytes.x) - 32.0),
        scale * (spread(bytes.y) - 32.0),
    );
}

// The scales of the first and of the last 16 columns.
fn unit_scales(unit: u32) -> vec2<f32> {
    let bytes = plane_word(plane_start(2u) + (unit >> 1u)) >> ((unit & 1u) << 4u);
    let tops = vec2<i32>(bitcast<i32>(bytes << 24u), bitcast<i32>(bytes << 16u));
    return plane_half(plane_start(3u), unit >> 3u) * vec2<f32>(tops >> vec2<u32>(24u));
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;

struct Unit {
    words: vec4<u32>,
    tops: vec2<u32>,
    scales: vec2<f32>,
}

fn load_unit(unit: u32) -> Unit {
    let at = plane_start(1u) + 2u * unit;
    return Unit(plane_row(unit), vec2<u32>(plane_word(at), plane_word(at + 1u)), unit_scales(unit));
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let low = (unit.words[quad & 3u] >> (quad & 4u)) & 0x0f0f0f0fu;
    let tops = select(unit.tops.x, unit.tops.y, quad >= 4u) >> (2u * (quad & 3u));
    return lift(low | ((tops << 4u) & 0x30303030u), 0xffffu, 32.0);
}

fn combine(unit: Unit, first: f32, last: f32, x_sum: f32) -> f32 {
    return unit.scales.x * first + unit.scales.y * last;
}
