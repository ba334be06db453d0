// 64-bit integers as vec2<u32>, low word first, two's complement; arithmetic wraps as in PyTorch.
//
// turns  at most 64

fn i64_from_i32(a: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(a), bitcast<u32>(a >> 31u)); }

fn i64_is_negative(a: vec2<u32>) -> bool { return (a.y & 0x80000000u) != 0u; }

fn i64_neg(a: vec2<u32>) -> vec2<u32> {
    let low = ~a.x + 1u;
    return vec2<u32>(low, ~a.y + select(0u, 1u, low == 0u));
}

fn i64_sign(a: vec2<u32>) -> vec2<u32> {
    return select(select(vec2<u32>(0u), vec2<u32>(1u, 0u), any(a != vec2<u32>(0u))), vec2<u32>(0xffffffffu), i64_is_negative(a));
}

fn i64_abs(a: vec2<u32>) -> vec2<u32> { return select(a, i64_neg(a), i64_is_negative(a)); }

fn i64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn i64_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

// The full 64-bit product of two words, by 16-bit halves.
fn i64_mul_words(a: u32, b: u32) -> vec2<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return vec2<u32>((other << 16u) | (low & 0xffffu), a1 * b1 + (middle >> 16u) + (other >> 16u));
}

fn i64_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let p = i64_mul_words(a.x, b.x);
    return vec2<u32>(p.x, p.y + a.x * b.y + a.y * b.x);
}

fn i64_eq(a: vec2<u32>, b: vec2<u32>) -> bool { return all(a == b); }

fn i64_lt(a: vec2<u32>, b: vec2<u32>) -> bool {
    let high_a = bitcast<i32>(a.y);
    let high_b = bitcast<i32>(b.y);
    return high_a < high_b || (high_a == high_b && a.x < b.x);
}

fn i64_below(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }

// Quotient (xy) and remainder (zw) of unsigned 64-bit numbers, bit by bit; by zero both are zero.
fn i64_divide_unsigned(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if (all(b == vec2<u32>(0u))) {
        return vec4<u32>(0u);
    }
    if (a.y == 0u && b.y == 0u) {
        return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u);
    }
    var quotient = vec2<u32>(0u);
    var rest = vec2<u32>(0u);
    for (var step = 0u; step < 64u; step++) {
        let bit = 63u - step;
        let next = select((a.x >> (bit & 31u)) & 1u, (a.y >> (bit & 31u)) & 1u, bit >= 32u);
        rest = vec2<u32>((rest.x << 1u) | next, (rest.y << 1u) | (rest.x >> 31u));
        quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
        if (!i64_below(rest, b)) {
            rest = i64_sub(rest, b);
            quotient.x |= 1u;
        }
    }
    return vec4<u32>(quotient, rest);
}

fn i64_trunc_divide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let q = i64_divide_unsigned(i64_abs(a), i64_abs(b)).xy;
    return select(q, i64_neg(q), i64_is_negative(a) != i64_is_negative(b));
}

fn i64_fmod(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let r = i64_divide_unsigned(i64_abs(a), i64_abs(b)).zw;
    return select(r, i64_neg(r), i64_is_negative(a));
}

fn i64_remainder(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let r = i64_fmod(a, b);
    return select(r, i64_add(r, b), any(r != vec2<u32>(0u)) && i64_is_negative(r) != i64_is_negative(b));
}

fn i64_floor_divide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let q = i64_trunc_divide(a, b);
    let exact = all(i64_mul(q, b) == a) || all(b == vec2<u32>(0u));
    return select(i64_sub(q, vec2<u32>(1u, 0u)), q, exact || i64_is_negative(a) == i64_is_negative(b));
}

fn i64_power(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    if (i64_is_negative(b)) {
        // 1 and -1 have inverses; of other integers the power rounds to zero.
        let unit = (a.x == 1u && a.y == 0u) || (all(a == vec2<u32>(0xffffffffu)) && (b.x & 1u) == 0u);
        let negative = all(a == vec2<u32>(0xffffffffu)) && (b.x & 1u) == 1u;
        return select(select(vec2<u32>(0u), vec2<u32>(1u, 0u), unit), vec2<u32>(0xffffffffu), negative);
    }
    var result = vec2<u32>(1u, 0u);
    var base = a;
    var exponent = b;
    while (any(exponent != vec2<u32>(0u))) {
        if ((exponent.x & 1u) != 0u) {
            result = i64_mul(result, base);
        }
        base = i64_mul(base, base);
        exponent = vec2<u32>((exponent.x >> 1u) | (exponent.y << 31u), exponent.y >> 1u);
    }
    return result;
}

// How far to shift: out of range is past the width.
fn i64_places(a: vec2<u32>) -> u32 { return select(a.x, 64u, a.y != 0u || a.x > 64u); }

fn i64_shift_left(a: vec2<u32>, bits: u32) -> vec2<u32> {
    if (bits >= 64u) { return vec2<u32>(0u); }
    if (bits >= 32u) { return vec2<u32>(0u, a.x << (bits - 32u)); }
    if (bits == 0u) { return a; }
    return vec2<u32>(a.x << bits, (a.y << bits) | (a.x >> (32u - bits)));
}

fn i64_shift_right(a: vec2<u32>, bits: u32) -> vec2<u32> {
    let high = bitcast<i32>(a.y);
    let sign = bitcast<u32>(high >> 31u);
    if (bits >= 64u) { return vec2<u32>(sign); }
    if (bits >= 32u) { return vec2<u32>(bitcast<u32>(high >> (bits - 32u)), sign); }
    if (bits == 0u) { return a; }
    return vec2<u32>((a.x >> bits) | (a.y << (32u - bits)), bitcast<u32>(high >> bits));
}

// Round to nearest even: the upper 24 significant bits are kept, what falls off is folded into a sticky bit.
fn i64_to_f32(a: vec2<u32>) -> f32 {
    let m = i64_abs(a);
    var value: f32;
    if (m.y == 0u) {
        value = f32(m.x);
    } else {
        let shift = 32u - countLeadingZeros(m.y);
        let word = select((m.y << (32u - shift)) | (m.x >> shift), m.y, shift == 32u);
        let lost = select(m.x & ((1u << shift) - 1u), m.x, shift == 32u);
        value = f32(word | select(0u, 1u, lost != 0u)) * bitcast<f32>((127u + shift) << 23u);
    }
    return select(value, -value, i64_is_negative(a));
}

// Truncates toward zero; -2^63 for NaN and values outside the range, as on x86 and so in PyTorch.
fn i64_from_f32(a: f32) -> vec2<u32> {
    let bits = bitcast<u32>(a);
    let exponent = i32((bits >> 23u) & 0xffu) - 150;
    let mantissa = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
    var m: vec2<u32>;
    if (exponent >= 40) {
        m = vec2<u32>(0u, 0x80000000u);
    } else if (exponent >= 0) {
        m = i64_shift_left(mantissa, u32(exponent));
    } else if (exponent > -24) {
        m = i64_shift_right(mantissa, u32(-exponent));
    } else {
        m = vec2<u32>(0u);
    }
    return select(m, i64_neg(m), (bits >> 31u) != 0u);
}

fn i64_max(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, i64_lt(a, b)); }

fn i64_min(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(b, a, i64_lt(a, b)); }
