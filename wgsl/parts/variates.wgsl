// log_gamma_variate(a, ...): logarithm of a gamma variate of shape a; log_gamma_slope(a, value): its derivative
// poisson_variate(rate, ...), binomial_variate(count, chance, ...), von_mises_variate(concentration, ...)
//
// Every number has a block of Philox of its own, and asks for it again at each turn; after the last turn it
// takes the middle.
//
// error   of the slope against float64: 3e-6 of the value
// turns   at most 480: 48 that draw words, of 10 each
// source  Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; Hoermann 1993, "The
//         transformed rejection method for generating Poisson random variables" (PTRS) and "The generation of
//         binomial random variates" (BTRS); Best and Fisher 1979, "Efficient simulation of the von Mises
//         distribution"; logarithms of probabilities as Loader 2000, "Fast and accurate computation of
//         binomial probabilities", has them; the slope for large a by Temme 1992, "Asymptotic inversion of
//         incomplete gamma functions"

fn words_again(index: u32, again: u32, seed: vec2<u32>, offset: vec2<u32>) -> vec4<u32> {
    let low = offset.x + index;
    return philox_again(vec2<u32>(low, offset.y + select(0u, 1u, low < offset.x)), again, seed);
}

// Between 0 and 1, without both.
fn open_share(word: u32) -> f32 { return (f32(word >> 9u) + 0.5) * 1.1920928955078125e-7; }

fn normal_pair(a: u32, b: u32) -> f32 {
    return sqrt(-2.0 * log_of(open_share(a))) * cos_of(6.28318531 * open_share(b));
}

fn log_gamma_variate(
    a: f32, index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32,
) -> f32 {
    if (is_nan(a) || a < 0.0) { return not_defined(a); }
    if (a == 0.0 || a > 3.4e38) { return infinity(a - 1.0); }
    let d = select(a, a + 1.0, a < 1.0) - 0.333333333;
    let c = 0.333333333 / sqrt(d);
    var found = log_of(d);
    for (var turn = 0u; turn < 24u; turn++) {
        let w = words_again(index, turn, vec2<u32>(seed_low, seed_high), vec2<u32>(offset_low, offset_high));
        let n = normal_pair(w.x, w.y);
        let m = c * n;
        if (m <= -1.0) { continue; }
        let rest = d * (3.0 * log1p_rest(m) - m * m * (3.0 + m));
        if (log_of(open_share(w.z)) < 0.5 * n * n + rest) {
            found += 3.0 * log1p_of(m);
            if (a < 1.0) { found += log_of(open_share(w.w)) / a; }
            break;
        }
    }
    return found;
}

fn log_gamma_slope(a: f32, value: f32) -> f32 {
    if (is_nan(a) || is_nan(value) || a <= 0.0) { return not_defined(a); }
    if (a > 200.0) {
        let m = expm1_of(value - log_of(a));
        let r = -log1p_rest(m);
        var k = -0.333333333 + m * (0.166666667 - m * (0.1 - m * (0.0666666667 - m * 0.0476190476)));
        if (abs(m) > 0.1) { k = (1.0 - 2.0 * r * (1.0 + m) / (m * m)) / m; }
        return (1.0 - select(r / m, 0.0, m == 0.0) - 0.5 * k / a) / a;
    }
    let x = exp_of(value);
    if (x <= max(1.0, a + 0.5)) {
        var term = 1.0;
        var sum = 1.0;
        var harmonic = 0.0;
        var derivative = 0.0;
        for (var n = 1.0; n < 128.0 && term > 1e-8 * sum; n += 1.0) {
            term *= x / (a + n);
            harmonic += 1.0 / (a + n);
            sum += term;
            derivative += term * harmonic;
        }
        return (sum * (digamma_of(a + 1.0) - value) + derivative) / a;
    }
    // The integral above x, by the trapezoidal rule of the logarithm.
    let shift = value - digamma_of(a);
    var total = 0.0;
    for (var u = -2.6; u < 4.9; u += 0.2) {
        let e = exp_of(-u);
        let s = exp_of(u - e);
        let q = log1p_of(s / x);
        total += exp_of((a - 1.0) * q - s) * (shift + q) * s * (1.0 + e);
    }
    return 0.2 * total / x;
}

// What Stirling's formula for log(k!) leaves out.
fn stirling_rest(k: f32) -> f32 {
    let z = 1.0 / (k * k);
    return (0.0833333333 - z * (0.00277777778 - z * (7.93650794e-4 - z * 5.95238095e-4))) / k;
}

// x log(mean / x) + x - mean
fn deviance(x: f32, mean: f32) -> f32 { return x * log1p_rest((mean - x) / x); }

fn log_poisson(k: f32, rate: f32) -> f32 {
    if (k == 0.0) { return -rate; }
    return deviance(k, rate) - 0.5 * log_of(6.28318531 * k) - stirling_rest(k);
}

fn poisson_variate(
    rate: f32, index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32,
) -> f32 {
    let seed = vec2<u32>(seed_low, seed_high);
    let offset = vec2<u32>(offset_low, offset_high);
    if (is_nan(rate) || rate < 0.0 || rate > 3.4e38) { return not_defined(rate); }
    if (rate < 10.0) {
        var left = open_share(words_again(index, 0u, seed, offset).x);
        var k = 0.0;
        var p = exp_of(-rate);
        for (; left > p && k < 64.0; k += 1.0) {
            left -= p;
            p *= rate / (k + 1.0);
        }
        return k;
    }
    let b = 0.931 + 2.53 * sqrt(rate);
    let a = -0.059 + 0.02483 * b;
    let scale = log_of(1.1239 + 1.1328 / (b - 3.4));
    var found = floor(rate);
    for (var turn = 0u; turn < 48u; turn++) {
        let w = words_again(index, turn, seed, offset);
        let u = open_share(w.x) - 0.5;
        let v = open_share(w.y);
        let beside = 0.5 - abs(u);
        let k = floor((2.0 * a / beside + b) * u + rate + 0.43);
        let is_inside = beside >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0);
        if (!is_inside && (k < 0.0 || (beside < 0.013 && v > beside))) { continue; }
        let height = log_of(v) + scale - log_of(a / (beside * beside) + b);
        if (is_inside || height <= log_poisson(k, rate)) {
            found = k;
            break;
        }
    }
    return found;
}

fn log_binomial(k: f32, n: f32, p: f32) -> f32 {
    if (k == 0.0) { return n * log1p_of(-p); }
    if (k == n) { return n * log_of(p); }
    let rest = stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k);
    let size = 0.5 * log_of(n / (6.28318531 * k * (n - k)));
    return rest + size + deviance(k, n * p) + deviance(n - k, n - n * p);
}

fn binomial_variate(
    count: f32, chance: f32, index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32,
) -> f32 {
    let seed = vec2<u32>(seed_low, seed_high);
    let offset = vec2<u32>(offset_low, offset_high);
    if (is_nan(count) || is_nan(chance)) { return not_defined(count); }
    if (count <= 0.0 || chance <= 0.0) { return 0.0; }
    if (chance >= 1.0) { return count; }
    let p = min(chance, 1.0 - chance);
    var found = floor(count * p);
    if (count * p < 10.0) {
        var left = open_share(words_again(index, 0u, seed, offset).x);
        var k = 0.0;
        var each = exp_of(count * log1p_of(-p));
        for (; left > each && k < min(count, 64.0); k += 1.0) {
            left -= each;
            each *= (count - k) / (k + 1.0) * (p / (1.0 - p));
        }
        return select(k, count - k, chance > 0.5);
    }
    let deviation = sqrt(count * p * (1.0 - p));
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let scale = log_of((2.83 + 5.1 / b) * deviation);
    let middle = log_binomial(floor((count + 1.0) * p), count, p);
    for (var turn = 0u; turn < 48u; turn++) {
        let w = words_again(index, turn, seed, offset);
        let u = open_share(w.x) - 0.5;
        let v = open_share(w.y);
        let beside = 0.5 - abs(u);
        let k = floor((2.0 * a / beside + b) * u + count * p + 0.5);
        if (k < 0.0 || k > count) { continue; }
        let height = log_of(v) + scale - log_of(a / (beside * beside) + b);
        if ((beside >= 0.07 && v <= 0.92 - 4.2 / b) || height <= log_binomial(k, count, p) - middle) {
            found = k;
            break;
        }
    }
    return select(found, count - found, chance > 0.5);
}

fn von_mises_variate(
    concentration: f32, index: u32, seed_low: u32, seed_high: u32, offset_low: u32, offset_high: u32,
) -> f32 {
    if (is_nan(concentration) || concentration <= 0.0) { return not_defined(concentration); }
    let c = max(concentration, 1e-6);
    let root = sqrt(1.0 + 4.0 * c * c);
    // The envelope's parameter less 1, where nothing cancels.
    let from_one = (sqrt(2.0 + 2.0 * root) - 1.0 - 1.0 / (root + 2.0 * c)) / (2.0 * c);
    var s = from_one * from_one / (2.0 - 2.0 * from_one);
    if (c < 0.05) { s = 1.0 / c + c - 1.0; }
    var found = 0.0;
    for (var turn = 0u; turn < 48u; turn++) {
        let w = words_again(index, turn, vec2<u32>(seed_low, seed_high), vec2<u32>(offset_low, offset_high));
        let angle = 1.57079633 * open_share(w.x);
        let below = s * sin_of(angle) * sin_of(angle) / (0.5 * s + cos_of(angle) * cos_of(angle));
        let height = c * (s + below);
        let v = open_share(w.y);
        if (height * (2.0 - height) > v || log_of(height / v) + 1.0 >= height) {
            found = 2.0 * asin_of(sqrt(min(0.5 * below, 1.0)));
            found = select(found, -found, (w.z & 1u) == 1u);
            break;
        }
    }
    return found;
}
