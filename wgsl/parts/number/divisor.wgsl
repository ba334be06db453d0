// gcd_i32, gcd_u32, i64_gcd, lcm_i32, lcm_u32, i64_lcm
//
// Of numbers without sign, by shifts and differences; the larger of 32 bits divided by the smaller at first,
// for where one is much larger a division does what many differences do.
//
// turns   at most 128: each takes a bit from one of the two
// source  Stein 1967, "Computational problems associated with Racah algebra"

fn i64_zeros(a: vec2<u32>) -> u32 {
    return select(countTrailingZeros(a.x), 32u + countTrailingZeros(a.y), a.x == 0u);
}

fn i64_halved(a: vec2<u32>, bits: u32) -> vec2<u32> {
    let low = select((a.x >> bits) | ((a.y << 1u) << (31u - bits)), a.y >> (bits & 31u), bits > 31u);
    return vec2<u32>(low, select(a.y >> bits, 0u, bits > 31u));
}

fn i64_gcd(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    var u = i64_abs(a);
    var v = i64_abs(b);
    if (all(u == vec2<u32>(0u))) { return v; }
    if (all(v == vec2<u32>(0u))) { return u; }
    let twos = min(i64_zeros(u), i64_zeros(v));
    u = i64_halved(u, i64_zeros(u));
    while (any(v != vec2<u32>(0u))) {
        v = i64_halved(v, i64_zeros(v));
        let is_less = i64_below(v, u);
        let d = select(i64_sub(v, u), i64_sub(u, v), is_less);
        u = select(u, v, is_less);
        v = d;
    }
    return i64_shift_left(u, twos);
}

fn gcd_u32(a: u32, b: u32) -> u32 {
    if (a == 0u || b == 0u) { return a | b; }
    let smaller = min(a, b);
    var u = smaller >> zeros_below(smaller);
    var v = max(a, b) % smaller;
    while (v != 0u) {
        v >>= zeros_below(v);
        let less = min(u, v);
        v = max(u, v) - less;
        u = less;
    }
    return u << zeros_below(a | b);
}

// countTrailingZeros of what is not 0, which Tint writes out for Vulkan in some twenty steps.
fn zeros_below(a: u32) -> u32 { return countOneBits((a & (0u - a)) - 1u); }

fn gcd_i32(a: i32, b: i32) -> i32 { return bitcast<i32>(gcd_u32(size_i32(a), size_i32(b))); }

fn size_i32(a: i32) -> u32 { return select(bitcast<u32>(a), 0u - bitcast<u32>(a), a < 0); }

fn lcm_i32(a: i32, b: i32) -> i32 { return abs(trunc_divide_i32(a, max(gcd_i32(a, b), 1)) * b); }

fn lcm_u32(a: u32, b: u32) -> u32 { return a / max(gcd_u32(a, b), 1u) * b; }

fn i64_lcm(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return i64_abs(i64_mul(i64_trunc_divide(a, i64_gcd(a, b)), b));
}
