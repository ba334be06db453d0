// weight = d * scale * (q - 32), q of 6 bits; scale a signed byte for 16 columns, one half d for 256
//
// Every product is exact in f32 (11 + 7 + 5 bits): nothing rounds.
//
// plane 0  quants  4 words per unit of 32 columns; word w holds the low 4 bits of columns 8w to
//                  8w + 7: column 8w + i in the low nibble of byte i, 8w + 4 + i in the high one
// plane 1  tops    2 words per unit, bits 2i and 2i + 1 of the 64 are bits five and six of column i
// plane 2  scales  one half word per unit: the byte of its first, then of its last 16 columns
// plane 3  supers  one half per 8 units
// source   GGUF block Q6_K, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

fn dequantize_word(word: u32, top: u32, scale: f32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        scale * (unpack_low(word) + unpack_fifth_sixth(top) - 32.0),
        scale * (unpack_high(word) + unpack_fifth_sixth(top >> 8u) - 32.0),
    );
}

// The scales of the first and of the last 16 columns of a unit.
fn unit_scales(unit: u32) -> vec2<f32> {
    let bytes = unpack_signed(plane_word(params.plane_2 + (unit >> 1u)) >> ((unit & 1u) << 4u));
    return plane_half(params.plane_3, unit >> 3u) * bytes.xy;
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scales = unit_scales(octet >> 2u);
    let top = plane_word(params.plane_1 + (octet >> 1u)) >> ((octet & 1u) << 4u);
    return dequantize_word(plane_word(octet), top, select(scales.x, scales.y, (octet & 2u) != 0u));
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let words = weight[unit];
    let first = plane_word(params.plane_1 + 2u * unit);
    let second = plane_word(params.plane_1 + 2u * unit + 1u);
    let scales = unit_scales(unit);
    let a = dequantize_word(words.x, first, scales.x);
    let b = dequantize_word(words.y, first >> 16u, scales.x);
    let c = dequantize_word(words.z, second, scales.y);
    let d = dequantize_word(words.w, second >> 16u, scales.y);
    return array<vec4<f32>, 8>(a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]);
}
