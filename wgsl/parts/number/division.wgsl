// fmod_of(a, b)          a - b * trunc(a / b), exactly
// remainder_of(a, b)     a - b * floor(a / b), with the sign of b
// floor_divide_of(a, b)  floor(a / b), from the exact remainder
// trunc_divide_of(a, b)  trunc(a / b), of the rounded quotient
// quotient_of(a, b)      a / b rounded to the nearest, 0 where it is less than 1
// remainder_i32, floor_divide_i32, trunc_divide_i32, fmod_i32, ..._u32: of integers; by zero all are zero
//
// NaN, infinities and zero divisors as in PyTorch. Whole numbers depend on the last bit of a quotient, of which
// WGSL leaves 2.5 units open (all of them for divisors above 2^126), fma may round twice, and subnormals may
// count as zero. So what decides is computed with integers, and subnormals count everywhere.
//
// turns  at most 280: the exponents differ by less

fn fmod_of(a: f32, b: f32) -> f32 {
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
    let sign = bitcast<u32>(a) & 0x80000000u;
    let near = abs(a) / abs(b);
    // Quotients below 2^20, of divisors from 2^-102 to 2^125: the whole number nearest to the quotient leaves from
    // -0.7 to 0.7 of the divisor.
    if (y - 0x0c800000u < 0x71800000u && bitcast<u32>(near) < 0x49800000u) {
        let down = (y & 0x7fffffu) | 0x800000u;
        let up = ((x & 0x7fffffu) | 0x800000u) << (((x >> 23u) - (y >> 23u)) & 31u);
        let left = bitcast<i32>(up - (bitcast<u32>(near + 8388608.0) & 0x7fffffu) * down);
        let rest = f32(select(left, left + bitcast<i32>(down), left < 0));
        let unit = bitcast<f32>((y & 0x7f800000u) - 0x0b800000u);
        return select(bitcast<f32>(bitcast<u32>(rest * unit) | sign), a, x < y);
    }
    if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) { return bitcast<f32>(0x7fc00000u | y); }
    if (x < y) { return a; }
    // Integers of 24 bits with a common exponent; the difference of the exponents goes eight bits at a time.
    let exponent = max(y >> 23u, 1u);
    let divisor = select(y & 0x7fffffu, (y & 0x7fffffu) | 0x800000u, y >= 0x800000u);
    var rest = select(x & 0x7fffffu, (x & 0x7fffffu) | 0x800000u, x >= 0x800000u) % divisor;
    var places = max(x >> 23u, 1u) - exponent;
    while (places != 0u && rest != 0u) {
        let step = min(places, 8u);
        rest = (rest << step) % divisor;
        places -= step;
    }
    if (rest != 0u) {
        let shift = min(countLeadingZeros(rest) - 8u, exponent - 1u);
        rest <<= shift;
        // A number without its leading bit is subnormal: exponent field 0.
        rest = select(rest, (rest & 0x7fffffu) | ((exponent - shift) << 23u), rest >= 0x800000u);
    }
    return bitcast<f32>(rest | sign);
}

fn remainder_of(a: f32, b: f32) -> f32 {
    let near = abs(a) / abs(b);
    if (is_short(near, b)) {
        let rest = short_rest(a, b, near);
        let is_other = rest != 0u && ((bitcast<u32>(a) ^ bitcast<u32>(b)) >> 31u) != 0u;
        let size = select(rest, bitcast<u32>(abs(b) - bitcast<f32>(rest)), is_other);
        let signs = select(bitcast<u32>(a), bitcast<u32>(b), is_other);
        return bitcast<f32>(size | (signs & 0x80000000u));
    }
    let r = fmod_of(a, b);
    let is_other = crosses(r, b);
    if (is_other && (bitcast<u32>(b) & 0x7fffffffu) < 0x20000000u) { return lowered(lifted(r) + lifted(b)); }
    return select(r, r + b, is_other);
}

// Whether a quotient is below 2^11, and its divisor from 2^-102 to 2^115: then all steps of `short_rest` are
// exact, in half as many instructions as those of `fmod_of`.
fn is_short(near: f32, b: f32) -> bool {
    return (bitcast<u32>(b) & 0x7fffffffu) - 0x0c800000u < 0x6c800000u && bitcast<u32>(near) < 0x45000000u;
}

// The bits of |a| - |b| * trunc(|a / b|), where |a / b| is about `near`. The divisor is one of 12 bits and the
// rest, and the whole number nearest to the quotient leaves from -0.51 to 0.51 of it.
fn short_rest(a: f32, b: f32, near: f32) -> u32 {
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
    let whole = bitcast<f32>((bitcast<u32>(near + 8388608.0) & 0x7fffffu) | 0x4b000000u) - 8388608.0;
    let head = bitcast<f32>((y + 0x800u) & 0xfffff000u);
    // the same, which no compiler knows: else it may take both products for one
    let hidden = bitcast<f32>(bitcast<u32>(whole) ^ (bitcast<u32>(near) & 0x80000000u));
    let left = (bitcast<f32>(x) - whole * head) - hidden * (bitcast<f32>(y) - head);
    return select(bitcast<u32>(select(left, left + bitcast<f32>(y), left < 0.0)), x, x < y);
}

fn floor_divide_of(a: f32, b: f32) -> f32 {
    let y = bitcast<u32>(b) & 0x7fffffffu;
    // Mostly no whole number is near: then no last bit decides. Divisors from 2^-64 to 2^64.
    let near = a / b;
    let lower = floor(near);
    let beyond = near - lower;
    if (y - 0x1f800000u < 0x40000000u && abs(near) > 1.0e-3 && abs(near) < 65536.0
        && min(beyond, 1.0 - beyond) > abs(near) * 1.0e-6) {
        return lower;
    }
    if (y == 0u) { return quotient_of(a, b); }
    let r = fmod_of(a, b);
    if (is_nan(r)) { return r; }
    let small = max(bitcast<u32>(a) & 0x7fffffffu, y) < 0x20000000u;
    let multiple = select(a - r, lifted(a) - lifted(r), small);
    let quotient = quotient_of(multiple, select(b, lifted(b), small)) - select(0.0, 1.0, crosses(r, b));
    let down = floor(quotient);
    let signed_zero = bitcast<f32>((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u);
    return select(select(down, down + 1.0, quotient - down > 0.5), signed_zero, quotient == 0.0);
}

fn trunc_divide_of(a: f32, b: f32) -> f32 { return trunc(quotient_of(a, b)); }

fn quotient_of(a: f32, b: f32) -> f32 {
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
    let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    let undefined = max(x, y) > 0x7f800000u || (x == y && (x == 0u || x == 0x7f800000u));
    if (undefined) { return bitcast<f32>(0x7fc00000u | y); }
    if (y == 0u || x == 0x7f800000u) { return bitcast<f32>(sign | 0x7f800000u); }
    if (x < y) { return bitcast<f32>(sign); }
    let up = significand(x);
    let down = significand(y);
    // 25 bits of the quotient: estimated, then set right by the remainder, whose upper bits wrap away.
    let places = select(25u, 24u, up.x >= down.x);
    var quotient = u32(f32(up.x) / f32(down.x) * f32(1u << places));
    var rest = bitcast<i32>((up.x << places) - quotient * down.x);
    while (rest < 0) {
        quotient -= 1u;
        rest += i32(down.x);
    }
    while (rest >= i32(down.x)) {
        quotient += 1u;
        rest -= i32(down.x);
    }
    // To 24 bits. There are no ties, which times b would have 25; a carry moves on into the exponent.
    quotient = (quotient + 1u) >> 1u;
    let exponent = 150u + up.y - down.y - places;
    return bitcast<f32>(sign | select((exponent << 23u) + quotient, 0x7f800000u, exponent > 253u));
}

// The magnitude of a finite number but zero as an integer with 24 bits, and the field of its exponent plus 32.
fn significand(magnitude: u32) -> vec2<u32> {
    let shift = countLeadingZeros(magnitude) - 8u;
    if (magnitude < 0x800000u) { return vec2<u32>(magnitude << shift, 33u - shift); }
    return vec2<u32>((magnitude & 0x7fffffu) | 0x800000u, (magnitude >> 23u) + 32u);
}

// Whether a remainder is neither zero nor NaN and has another sign than b.
fn crosses(r: f32, b: f32) -> bool {
    let magnitude = bitcast<u32>(r) & 0x7fffffffu;
    return magnitude - 1u < 0x7f800000u && ((bitcast<u32>(r) ^ bitcast<u32>(b)) >> 31u) != 0u;
}

// x * 2^64, of |x| < 2^-63: never subnormal.
fn lifted(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    let from_subnormal = bitcast<u32>(f32(magnitude) * 2.5849394e-26);
    let scaled = select(magnitude + 0x20000000u, from_subnormal, magnitude < 0x800000u);
    return bitcast<f32>(scaled | (bits & 0x80000000u));
}

// x / 2^64, of what `lifted` gives.
fn lowered(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    let to_subnormal = u32(abs(x) * 3.8685626e25);
    let scaled = select(magnitude - 0x20000000u, to_subnormal, magnitude < 0x20800000u);
    return bitcast<f32>(scaled | (bits & 0x80000000u));
}

// By unsigned division: what % gives for negative numbers is left open below WGSL, and some drivers differ.
fn trunc_divide_i32(a: i32, b: i32) -> i32 {
    let quotient = bitcast<i32>(bitcast<u32>(abs(a)) / max(bitcast<u32>(abs(b)), 1u));
    return select(select(quotient, -quotient, (a < 0) != (b < 0)), 0, b == 0);
}

fn fmod_i32(a: i32, b: i32) -> i32 { return select(a - b * trunc_divide_i32(a, b), 0, b == 0); }

fn remainder_i32(a: i32, b: i32) -> i32 {
    let r = fmod_i32(a, b);
    return select(r, r + b, r != 0 && (r < 0) != (b < 0));
}

fn floor_divide_i32(a: i32, b: i32) -> i32 {
    let r = fmod_i32(a, b);
    return trunc_divide_i32(a, b) - select(0, 1, r != 0 && (r < 0) != (b < 0));
}

fn divide_u32(a: u32, b: u32) -> u32 { return select(a / max(b, 1u), 0u, b == 0u); }

fn remainder_u32(a: u32, b: u32) -> u32 { return a % max(b, 1u); }
