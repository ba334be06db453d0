// Keys whose unsigned order is the order of the values: first .x, then .y.
//
// A 32-bit value enters as (bits, 0), a 64-bit one as (high, low). NaN is the largest value, -0
// equals +0. With `const DESCENDING` the order is reversed, NaN first. The kernel declares
// `const FLOAT`, `const SIGNED` and `const DESCENDING`.

fn order_key(value: vec2<u32>) -> vec2<u32> {
    var key = value;
    if (FLOAT) {
        // Without branches: kernels have a dozen of these, and compile faster so.
        let magnitude = key.x & 0x7fffffffu;
        let ordered = select(key.x | 0x80000000u, ~key.x, (key.x >> 31u) == 1u);
        key.x = select(select(ordered, 0x80000000u, magnitude == 0u), 0xffffffffu, magnitude > 0x7f800000u);
    } else if (SIGNED) {
        key.x ^= 0x80000000u;
    }
    return select(key, ~key, DESCENDING);
}

// Eight bits of a key, from bit `shift` of its 64 on.
fn order_digit(value: vec2<u32>, shift: u32) -> u32 {
    let key = order_key(value);
    return (select(key.y, key.x, shift >= 32u) >> (shift % 32u)) & 255u;
}

fn order_before(a: vec2<u32>, a_index: u32, b: vec2<u32>, b_index: u32) -> bool {
    let is_low_before = (a.y < b.y) | ((a.y == b.y) & (a_index < b_index));
    return (a.x < b.x) | ((a.x == b.x) & is_low_before);
}

// An entry and where it was found.
struct Found {
    key: vec2<u32>,
    place: u32,
}

// Behind every entry there is.
fn found_nothing() -> Found {
    return Found(vec2<u32>(0xffffffffu, 0xffffffffu), 0xffffffffu);
}

fn found_before(a: Found, b: Found) -> bool {
    return order_before(a.key, a.place, b.key, b.place);
}

fn found_first(a: Found, b: Found) -> Found {
    let is_b = found_before(b, a);
    return Found(select(a.key, b.key, is_b), select(a.place, b.place, is_b));
}
