// weight = d * q, q a signed byte, one half d for 32 columns
//
// plane 0  quants  8 words per unit of 32 columns, byte i of word w is column 4w + i
// plane 1  scales  one half per unit
// source   GGUF block Q8_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = plane_half(params.plane_1, octet >> 2u);
    return array<vec4<f32>, 2>(
        scale * unpack_signed(plane_word(2u * octet)),
        scale * unpack_signed(plane_word(2u * octet + 1u)),
    );
}

fn dequantize(unit: u32) -> array<vec4<f32>, 8> {
    let first = weight[2u * unit];
    let second = weight[2u * unit + 1u];
    let scale = plane_half(params.plane_1, unit);
    return array<vec4<f32>, 8>(
        scale * unpack_signed(first.x),
        scale * unpack_signed(first.y),
        scale * unpack_signed(first.z),
        scale * unpack_signed(first.w),
        scale * unpack_signed(second.x),
        scale * unpack_signed(second.y),
        scale * unpack_signed(second.z),
        scale * unpack_signed(second.w),
    );
}
