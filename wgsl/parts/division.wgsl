// fmod_of(a, b)          a - b * trunc(a / b), exactly
// remainder_of(a, b)     a - b * floor(a / b), with the sign of b
// floor_divide_of(a, b)  floor(a / b), from the exact remainder: a device's quotient may be off by a few units
// remainder_i32, floor_divide_i32, trunc_divide_i32, fmod_i32, ..._u32: the same for integers; by zero all are zero
//
// NaN, infinities and zero divisors as in PyTorch.

fn fmod_of(a: f32, b: f32) -> f32 {
    let x = bitcast<u32>(a) & 0x7fffffffu;
    let y = bitcast<u32>(b) & 0x7fffffffu;
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
    return bitcast<f32>(rest | (bitcast<u32>(a) & 0x80000000u));
}

fn remainder_of(a: f32, b: f32) -> f32 {
    let r = fmod_of(a, b);
    return select(r, r + b, r != 0.0 && (r < 0.0) != (b < 0.0));
}

fn floor_divide_of(a: f32, b: f32) -> f32 {
    if (b == 0.0) { return a / b; }
    let r = fmod_of(a, b);
    let quotient = (a - r) / b - select(0.0, 1.0, r != 0.0 && (r < 0.0) != (b < 0.0));
    let down = floor(quotient);
    let signed_zero = bitcast<f32>((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u);
    return select(select(down, down + 1.0, quotient - down > 0.5), signed_zero, quotient == 0.0);
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
