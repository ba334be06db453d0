// low_half, word_halves  as in quant/halves, for adapters that run on the CPU: there the lanes of a
//                        vector go both ways of a branch
//
// uses  half

fn low_half(bits: u32) -> f32 {
    return half_to_float(bits);
}

fn word_halves(word: u32) -> vec2<f32> {
    return vec2<f32>(half_to_float(word & 0xffffu), half_to_float(word >> 16u));
}
