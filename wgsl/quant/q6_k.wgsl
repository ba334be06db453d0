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
    let unit = octet >> 2u;
    let scales = unit_scales(
        plane_word(plane_start(2u) + (unit >> 1u)), plane_word(plane_start(3u) + (unit >> 4u)), unit);
    let scale = select(scales.x, scales.y, (octet & 2u) != 0u);
    return array<vec4<f32>, 2>(
        scale * (spread(bytes.x) - 32.0),
        scale * (spread(bytes.y) - 32.0),
    );
}

// The scales of the first and of the last 16 columns of a unit, from its words of planes 2 and 3.
fn unit_scales(scales: u32, supers: u32, unit: u32) -> vec2<f32> {
    let bytes = scales >> ((unit & 1u) << 4u);
    let tops = vec2<i32>(bitcast<i32>(bytes << 24u), bitcast<i32>(bytes << 16u));
    return half_of(supers, unit >> 3u) * vec2<f32>(tops >> vec2<u32>(24u));
}

const X_FACTORS = UNLIFT_FACTORS;
const HAS_LOW = false;
const ZERO_POINT = 32;
const HALF_SCALES = true;

struct Unit {
    words: vec4<u32>,
    // Those of two units.
    tops: vec4<u32>,
    scales: u32,
    supers: u32,
    at: u32,
}

fn load_unit(unit: u32) -> Unit {
    let tops = plane_row((plane_start(1u) >> 2u) + (unit >> 1u));
    let scales = plane_word(plane_start(2u) + (unit >> 1u));
    return Unit(plane_row(unit), tops, scales, plane_word(plane_start(3u) + (unit >> 4u)), unit);
}

// The low bits of a quad's bytes, and above bit 3 the two others, with what lies around those.
fn crowded_bytes(unit: Unit, quad: u32) -> u32 {
    let low = (word_at(unit.words, quad) >> (quad & 4u)) & 0x0f0f0f0fu;
    let both = select(unit.tops.xy, unit.tops.zw, (unit.at & 1u) != 0u);
    let tops = select(both.x, both.y, quad >= 4u);
    // Brought to bits 4 and 5 of each byte by one shift.
    let place = 2u * (quad & 3u);
    let high = select(tops >> (max(place, 4u) - 4u), tops << (4u - min(place, 4u)), place < 4u);
    return low | (high & 0xf0f0f0f0u);
}

fn quad_bytes(unit: Unit, quad: u32) -> u32 {
    return crowded_bytes(unit, quad) & 0x3f3f3f3fu;
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    return lift(crowded_bytes(unit, quad), 0x3f3fu, 0u, 32.0);
}

fn scale_product(unit: Unit, place: u32, product: vec2<f32>, x_sum: f32) -> f32 {
    return dot(unit_scales(unit.scales, unit.supers, unit.at), product);
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return scale_product(unit, place, vec2<f32>(first, last), x_sum);
}
