// Scores of attention as finite numbers, and what they make of a row, with PyTorch's results about
//   NaN and infinities: none of them is computed with.
//
// settled(score)                     NaN and +inf become POISON, above every other score; -inf
//                                    becomes HIDDEN, below; what is finite lies between
// masked_score(score, bias, is_bool) the settled sum with a mask: a bool one is 0 where the key is
//                                    hidden, which adds -inf
// capped(score, cap)                 cap * tanh(score / cap); the score where cap is 0
// with_sink(total, largest, sink)   the sum of weights with that of a key whose score is the sink
//                                    and whose value is 0
// attention_row(sum, total, largest) the result: NaN for a row that met POISON, 0 for one that saw
//                                    no key

const HIDDEN = -3.4028234e38;
const LOWEST = -3.4e38;
const HIGHEST = 3.4e38;
const POISON = 3.4028234e38;

fn settled(score: f32) -> f32 {
    let bits = bitcast<u32>(score);
    let is_finite = (bits & 0x7fffffffu) < 0x7f800000u;
    return select(select(POISON, HIDDEN, bits == 0xff800000u), clamp(score, LOWEST, HIGHEST), is_finite);
}

fn settled_quad(score: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(settled(score.x), settled(score.y), settled(score.z), settled(score.w));
}

fn masked_score(score: f32, bias: f32, is_bool: bool) -> f32 {
    let is_hidden = select(bitcast<u32>(bias) == 0xff800000u, bias == 0.0, is_bool);
    if (is_hidden) {
        return select(HIDDEN, POISON, settled(score) == POISON);
    }
    return settled(select(score + bias, score, is_bool));
}

fn capped(score: f32, cap: f32) -> f32 {
    if (cap == 0.0 || (bitcast<u32>(score) & 0x7fffffffu) > 0x7f800000u) {
        return score;
    }
    // tanh of the absolute value: by its series near 0, where 1 - e loses digits
    let a = min(abs(score / cap), 10.0);
    let e = exp(-2.0 * a);
    let square = a * a;
    let series = a * (1.0 + square * (-0.33333333 + square * (0.13333333 - square * 0.05396825)));
    let size = cap * select((1.0 - e) / (1.0 + e), series, a < 0.25);
    return select(size, -size, score < 0.0);
}

fn with_sink(total: f32, largest: f32, sink: f32) -> f32 {
    return total + exp(min(sink - largest, 88.0));
}

fn attention_row(sum: f32, total: f32, largest: f32) -> f32 {
    if (largest >= POISON) {
        // a run-time number: a NaN must not be a constant expression
        return bitcast<f32>(0x7fc00000u | (bitcast<u32>(largest) & 1u));
    }
    return select(sum / total, 0.0, total == 0.0);
}
