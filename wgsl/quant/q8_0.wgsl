// weight = d * q, q a signed byte, one half d for 32 columns
//
// plane 0  quants  8 words per unit of 32 columns, byte i of word w is column 4w + i
// plane 1  scales  one half per unit
// source   GGUF block Q8_0, as gguf.quants of the PyPI package `gguf` defines it
// uses     half, quant/unpack

// Signed bytes as unsigned ones, 128 more.
const Q8_0_SIGN = 0x80808080u;

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let scale = plane_half(params.plane_1, octet >> 2u);
    return array<vec4<f32>, 2>(
        scale * (spread(plane_word(2u * octet) ^ Q8_0_SIGN) - 128.0),
        scale * (spread(plane_word(2u * octet + 1u) ^ Q8_0_SIGN) - 128.0),
    );
}

fn unpack(unit: u32) -> array<vec4<f32>, 8> {
    let first = weight[2u * unit] ^ vec4<u32>(Q8_0_SIGN);
    let last = weight[2u * unit + 1u] ^ vec4<u32>(Q8_0_SIGN);
    return array<vec4<f32>, 8>(
        lift(first.x, 0xffffu, 128.0),
        lift(first.y, 0xffffu, 128.0),
        lift(first.z, 0xffffu, 128.0),
        lift(first.w, 0xffffu, 128.0),
        lift(last.x, 0xffffu, 128.0),
        lift(last.y, 0xffffu, 128.0),
        lift(last.z, 0xffffu, 128.0),
        lift(last.w, 0xffffu, 128.0),
    );
}

fn unit_scales(unit: u32) -> vec4<f32> {
    return vec4<f32>(plane_half(params.plane_1, unit), 0.0, 0.0, 0.0);
}

fn combine(scales: vec4<f32>, first: vec4<f32>, last: vec4<f32>, x_sum: f32) -> f32 {
    return scales.x * (unlift(first) + unlift(last));
}
