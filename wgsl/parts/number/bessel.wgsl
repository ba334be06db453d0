// i0_of, i0e_of, i1_of, i1e_of, k0_of, k0e_of, k1_of, k1e_of    modified; scaled ones end in e
// j0_of, j1_of, y0_of, y1_of, spherical_j0_of, airy_ai_of
//
// Polynomials that interpolate at Chebyshev's nodes what is left of a function when its singular factors are
// taken off: near 0 the logarithm and powers of x, far from it the exponential or the wave, whose amplitudes
// of cosine and sine they are.
//
// error   against float64, of arguments to 100,000: 9e-7, in units of the larger of 1 and the value; modified
//         ones 1e-6 of the value; Airy's 3e-6 from -10 on, 2e-5 at -100, where the place in the wave is rounded
// source  DLMF 10.8, 10.17(i), 10.31, 10.40(i), 9.7; coefficients by mpmath, which loses less than 2e-7

fn i0e_of(x: f32) -> f32 {
    let a = abs(x);
    if (a <= 8.0) { return i0_near(0.25 * a - 1.0); }
    return i0_far(16.0 / a - 1.0) / sqrt(a);
}

fn i1e_of(x: f32) -> f32 {
    let a = abs(x);
    if (a <= 8.0) { return x * i1_near(0.25 * a - 1.0); }
    return with_sign(i1_far(16.0 / a - 1.0) / sqrt(a), x);
}

// In two factors: the exponential overflows before the function does.
fn i0_of(x: f32) -> f32 {
    let h = exp_of(0.5 * abs(x));
    return h * i0e_of(x) * h;
}

fn i1_of(x: f32) -> f32 {
    let h = exp_of(0.5 * abs(x));
    return h * i1e_of(x) * h;
}

fn k0e_of(x: f32) -> f32 { return k_of(x, true, false); }

fn k0_of(x: f32) -> f32 { return k_of(x, false, false); }

fn k1e_of(x: f32) -> f32 { return k_of(x, true, true); }

fn k1_of(x: f32) -> f32 { return k_of(x, false, true); }

fn k_of(x: f32, is_scaled: bool, is_first: bool) -> f32 {
    if (is_nan(x) || x < 0.0) { return not_defined(x); }
    if (x == 0.0) { return infinity(1.0); }
    if (x <= 2.0) {
        let t = 0.5 * x * x - 1.0;
        let l = log_of(0.5 * x);
        let e = exp_of(x);
        let k = select(k0_near(t) - l * i0_of(x), k1_near(t) / x + l * i1_of(x), is_first);
        return select(k, k * e, is_scaled);
    }
    let t = 4.0 / x - 1.0;
    let k = select(k0_far(t), k1_far(t), is_first) / sqrt(x);
    let h = exp_of(-0.5 * x);
    return select(h * k * h, k, is_scaled);
}

fn j0_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = abs(x);
    if (a <= 8.0) { return j0_near(a * a * 0.03125 - 1.0); }
    return wave(a, j0_cosine(wave_place(a)), j0_sine(wave_place(a)), 0.0);
}

fn j1_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let a = abs(x);
    if (a <= 8.0) { return x * j1_near(a * a * 0.03125 - 1.0); }
    return with_sign(wave(a, j1_cosine(wave_place(a)), j1_sine(wave_place(a)), 1.0), x);
}

fn y0_of(x: f32) -> f32 {
    if (is_nan(x) || x < 0.0) { return not_defined(x); }
    if (x == 0.0) { return infinity(-1.0); }
    if (x <= 8.0) {
        let t = x * x * 0.03125 - 1.0;
        return y0_near(t) + 0.636619772 * log_of(x) * j0_near(t);
    }
    return wave(x, j0_cosine(wave_place(x)), j0_sine(wave_place(x)), 1.0);
}

fn y1_of(x: f32) -> f32 {
    if (is_nan(x) || x < 0.0) { return not_defined(x); }
    if (x == 0.0) { return infinity(-1.0); }
    if (x <= 8.0) {
        let t = x * x * 0.03125 - 1.0;
        return x * y1_near(t) + 0.636619772 * (log_of(x) * (x * j1_near(t)) - 1.0 / x);
    }
    return wave(x, j1_cosine(wave_place(x)), j1_sine(wave_place(x)), 2.0);
}

fn wave_place(a: f32) -> f32 { return 128.0 / a / a - 1.0; }

// sqrt(2 / (pi a)) * (p cos(a - shift) - q sin(a - shift)), shift = (1/4 + quarters / 2) * pi.
fn wave(a: f32, p: f32, q: f32, quarters: f32) -> f32 {
    let around = sin_cos_of(a);
    let s = around.x;
    let c = around.y;
    let turned = select(vec2<f32>(c + s, s - c), vec2<f32>(s - c, -c - s), quarters > 0.0);
    let both = select(turned, vec2<f32>(-c - s, c - s), quarters > 1.0);
    return (p * both.x - q * 8.0 / a * both.y) * 0.564189584 / sqrt(a);
}

fn spherical_j0_of(x: f32) -> f32 {
    if (abs(x) > 3.4e38) { return 0.0; }
    return select(sin_of(x) / x, 1.0, x == 0.0);
}

fn airy_ai_of(x: f32) -> f32 {
    if (is_nan(x) || abs(x) > 3.4e38) { return not_defined(x); }
    let a = abs(x);
    if (a <= 2.0) { return airy_near(0.5 * x); }
    let zeta = 0.666666667 * a * sqrt(a);
    let w = 1.88561808 / zeta;
    let size = 0.564189584 / sqrt(sqrt(a));
    if (x > 0.0) {
        let h = exp_of(-0.5 * zeta);
        return h * airy_right(2.0 * w - 1.0) * 0.5 * size * h;
    }
    let around = sin_cos_of(zeta);
    let s = around.x;
    let c = around.y;
    let q = w * airy_sine(2.0 * w - 1.0);
    return size * 0.707106781 * (airy_cosine(2.0 * w - 1.0) * (c + s) + q * (s - c));
}

fn i0_near(t: f32) -> f32 {
    var p = 0.00189432223;
    p = horner(p, t, vec4<f32>(-0.00436732569, 0.00157555718, -0.00171341825, 0.0139645488));
    p = horner(p, t, vec4<f32>(-0.0246937723, 0.0290835299, -0.0402424033, 0.0571118621));
    p = horner(p, t, vec4<f32>(-0.0703820352, 0.0792213013, -0.0848278182, 0.0873472953));
    p = horner(p, t, vec4<f32>(-0.0890531991, 0.0945155475, -0.113004123, 0.207001921));
    return p;
}

fn i0_far(t: f32) -> f32 {
    var p = (1.08298983e-07 * t + 3.63171031e-07) * t + 1.47679211e-06;
    p = horner(p, t, vec4<f32>(1.11115255e-05, 0.000136216843, 0.00336055585, 0.402176509));
    return p;
}

fn i1_near(t: f32) -> f32 {
    var p = 0.000295533883;
    p = horner(p, t, vec4<f32>(-0.000727186742, 0.000458867388, -0.000782789413, 0.00328453404));
    p = horner(p, t, vec4<f32>(-0.00627549095, 0.00943228148, -0.0151672271, 0.0237323263));
    p = horner(p, t, vec4<f32>(-0.0337949031, 0.0446671243, -0.0552601501, 0.0637679391));
    p = horner(p, t, vec4<f32>(-0.0684840366, 0.0680575887, -0.0611243081, 0.0446877099));
    return p;
}

fn i1_far(t: f32) -> f32 {
    var p = (-1.22124985e-07 * t - 4.21555437e-07) * t - 1.8267145e-06;
    p = horner(p, t, vec4<f32>(-1.50033231e-05, -0.000219236669, -0.00974958153, 0.389398459));
    return p;
}

fn k0_near(t: f32) -> f32 {
    var p = 4.05550013e-06 * t + 0.000182896968;
    p = horner(p, t, vec4<f32>(0.00505339227, 0.0717769761, 0.340497321, -0.303620771));
    return p;
}

fn k0_far(t: f32) -> f32 {
    var p = 1.05168567e-06;
    p = horner(p, t, vec4<f32>(-2.97762074e-06, 6.7498384e-06, -2.40971798e-05, 9.96332931e-05));
    p = horner(p, t, vec4<f32>(-0.00047995238, 0.00303288628, -0.0310714479, 1.21859534));
    return p;
}

fn k1_near(t: f32) -> f32 {
    var p = -3.89322399e-05 * t - 0.00138423116;
    p = horner(p, t, vec4<f32>(-0.0278542301, -0.24383813, -0.332240956, 0.885088266));
    return p;
}

fn k1_far(t: f32) -> f32 {
    var p = -1.27062105e-06;
    p = horner(p, t, vec4<f32>(3.66839412e-06, -8.66435023e-06, 3.20839872e-05, -0.000139675715));
    p = horner(p, t, vec4<f32>(0.000735942321, -0.00556672338, 0.103349721, 1.36315189));
    return p;
}

fn j0_near(t: f32) -> f32 {
    var p = ((-2.74156513e-06 * t + 3.89537765e-05) * t - 0.000443519104) * t + 0.00405753765;
    p = horner(p, t, vec4<f32>(-0.0284727325, 0.145989129, -0.507468043, 1.0383794));
    p = horner(p, t, vec4<f32>(-0.808088808, -0.648469277, 0.930301247, 0.0458296648));
    return p;
}

fn j1_near(t: f32) -> f32 {
    var p = ((-1.20555975e-07 * t + 1.88781176e-06) * t - 2.4044752e-05) * t + 0.000249472778;
    p = horner(p, t, vec4<f32>(-0.00202904001, 0.0124568257, -0.0547458181, 0.158583762));
    p = horner(p, t, vec4<f32>(-0.259594865, 0.151516652, 0.0810586604, -0.058143828));
    return p;
}

fn y0_near(t: f32) -> f32 {
    var p = ((5.3706429e-06 * t - 7.37649896e-05) * t + 0.000806103061) * t - 0.00702464883;
    p = horner(p, t, vec4<f32>(0.0463670765, -0.218958038, 0.672177072, -1.0775476));
    p = horner(p, t, vec4<f32>(0.144126324, 1.64709647, -0.82843589, -0.382250654));
    return p;
}

fn y1_near(t: f32) -> f32 {
    var p = ((2.39905138e-07 * t - 3.64060006e-06) * t + 4.46722405e-05) * t - 0.000443772742;
    p = horner(p, t, vec4<f32>(0.00342249182, -0.01962878, 0.078547869, -0.196398393));
    p = horner(p, t, vec4<f32>(0.235072092, 0.0233675713, -0.243377431, 0.0707598588));
    return p;
}

fn j0_cosine(t: f32) -> f32 {
    return ((-2.06509217e-07 * t + 6.15035924e-06) * t - 0.000536367164) * t + 0.999457274;
}

fn j0_sine(t: f32) -> f32 {
    return ((7.17210237e-08 * t - 1.48289327e-06) * t + 6.83314084e-05) * t - 0.0155551132;
}

fn j1_cosine(t: f32) -> f32 {
    return ((2.46752682e-07 * t - 7.97455719e-06) * t + 0.000898804768) * t + 1.00090703;
}

fn j1_sine(t: f32) -> f32 {
    return ((-8.36516706e-08 * t + 1.82771602e-06) * t - 9.62144964e-05) * t + 0.0467768732;
}

fn airy_near(t: f32) -> f32 {
    var p = 0.000793828498;
    p = horner(p, t, vec4<f32>(-0.000766401004, -0.00575142083, 0.014900478, -6.05953642e-05));
    p = horner(p, t, vec4<f32>(-0.0662331858, 0.126250751, 0.000142513324, -0.345094916));
    p = horner(p, t, vec4<f32>(0.473353171, 8.57297564e-08, -0.517638184, 0.355028054));
    return p;
}

fn airy_right(t: f32) -> f32 {
    var p = ((-1.5318277e-06 * t + 4.58928241e-06) * t - 1.20981111e-05) * t + 4.77941215e-05;
    p = horner(p, t, vec4<f32>(-0.000227904995, 0.00141333892, -0.0146134571, 0.983679279));
    return p;
}

fn airy_cosine(t: f32) -> f32 {
    var p = -1.67987109e-08;
    p = horner(p, t, vec4<f32>(-3.97727712e-06, 1.43932586e-05, -1.88263885e-05, -4.02528024e-05));
    p = horner(p, t, vec4<f32>(0.00040914634, -0.00162110432, -0.00442304702, 0.997610284));
    return p;
}

fn airy_sine(t: f32) -> f32 {
    var p = (1.54889415e-05 * t - 1.52131377e-05) * t - 6.75412542e-05;
    p = horner(p, t, vec4<f32>(0.000293080604, -0.000558102939, -0.002091055, 0.035625331));
    return p;
}
