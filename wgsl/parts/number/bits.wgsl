// exponent_of(x), mantissa_of(x)  x = mantissa * 2^exponent, mantissas from 0.5 to 1; 0, infinity and NaN have
//                                 exponent 0
// next_after(a, b)                the number next to a toward b
// times_power_of_2(x, e)          x * 2^e for a whole e, also where 2^e is no f32
// ratio_of(a, b)                  a / b also for divisors above 2^126, of which GPUs may take the reciprocal as 0
//
// source  IEEE 754-2019, 3.4 and 5.3.1; by integers, since hardware may flush subnormals

fn ratio_of(a: f32, b: f32) -> f32 {
    let scale = select(1.0, 0.25, abs(b) > 8.5070592e37);
    return (a * scale) / (b * scale);
}

fn is_plain(magnitude: u32) -> bool { return magnitude - 1u < 0x7f7fffffu; }

fn exponent_of(x: f32) -> i32 {
    let magnitude = bitcast<u32>(x) & 0x7fffffffu;
    if (!is_plain(magnitude)) { return 0; }
    let e = i32(magnitude >> 23u);
    return select(e - 126, -117 - i32(countLeadingZeros(magnitude)) , e == 0);
}

fn mantissa_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    if (!is_plain(magnitude)) { return x; }
    let shift = select(0u, countLeadingZeros(magnitude) - 8u, magnitude < 0x00800000u);
    return bitcast<f32>((bits & 0x80000000u) | 0x3f000000u | ((magnitude << shift) & 0x7fffffu));
}

fn next_after(a: f32, b: f32) -> f32 {
    if (is_nan(a)) { return a; }
    let bits = bitcast<u32>(a);
    let goal = bitcast<u32>(b);
    if (is_nan(b) || bits == goal || ((bits | goal) & 0x7fffffffu) == 0u) { return b; }
    if ((bits & 0x7fffffffu) == 0u) { return bitcast<f32>((goal & 0x80000000u) | 1u); }
    // Away from zero where both have a sign and b is larger; the order of magnitudes is that of their bits.
    let away = (bits >> 31u) == (goal >> 31u) && (goal & 0x7fffffffu) > (bits & 0x7fffffffu);
    return bitcast<f32>(select(bits - 1u, bits + 1u, away));
}

fn power_of_2(e: i32) -> f32 { return bitcast<f32>(u32(e + 127) << 23u); }

// What leaves the range comes last, so that only one step rounds.
fn times_power_of_2(x: f32, e: f32) -> f32 {
    let all = i32(clamp(e, -300.0, 300.0));
    let last = clamp(all, -126, 127);
    let middle = clamp(all - last, -126, 127);
    return x * power_of_2(all - last - middle) * power_of_2(middle) * power_of_2(last);
}
