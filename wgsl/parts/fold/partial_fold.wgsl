// Values of any type as the words of `partials`: two each, or four with WIDE. A bit above 16 of its
//   own says that each is there, whatever the value.
//
// partial_fold(first, width, start, step, parts)
//   the values number first + p * width, for p = start, start + step, ... below `parts`, combined
//
// The kernel declares `alias T`, `fn identity`, `const WIDE`, `fn apply`, and `fn to_bits` and
// `fn from_bits`, which turn a value into bits and back.
//
// turns  a quarter of parts / step
// uses  partials

const PARTIAL_VALUE_WORDS = select(2u, 4u, WIDE);

fn partial_leave_value(number: u32, value: T) {
    let bits = to_bits(value);
    let at = number * PARTIAL_VALUE_WORDS;
    partial_leave(at, 0x10000u | (bits.x & 0xffffu));
    partial_leave(at + 1u, 0x10000u | (bits.x >> 16u));
    if (WIDE) {
        partial_leave(at + 2u, 0x10000u | (bits.y & 0xffffu));
        partial_leave(at + 3u, 0x10000u | (bits.y >> 16u));
    }
}

fn partial_look_at_value(number: u32, is_part: bool) -> vec4<u32> {
    var words = vec4<u32>(0u);
    if (is_part) {
        let at = number * PARTIAL_VALUE_WORDS;
        words.x = partial_look(at);
        words.y = partial_look(at + 1u);
        if (WIDE) {
            words.z = partial_look(at + 2u);
            words.w = partial_look(at + 3u);
        }
    }
    return words;
}

fn partial_take_value(number: u32, is_part: bool, seen: vec4<u32>) -> T {
    if (!is_part) {
        return identity();
    }
    let at = number * PARTIAL_VALUE_WORDS;
    var bits = vec2<u32>(0u);
    bits.x = partial_take(at, seen.x) & 0xffffu;
    bits.x |= partial_take(at + 1u, seen.y) << 16u;
    if (WIDE) {
        bits.y = partial_take(at + 2u, seen.z) & 0xffffu;
        bits.y |= partial_take(at + 3u, seen.w) << 16u;
    }
    return from_bits(bits);
}

fn partial_fold(first: u32, width: u32, start: u32, step: u32, parts: u32) -> T {
    var value = identity();
    // four parts are looked at before the first one is waited for
    for (var p = start; p < parts; p += 4u * step) {
        let q = vec4<u32>(p, p + step, p + 2u * step, p + 3u * step);
        let is_part = q < vec4<u32>(parts);
        let at = vec4<u32>(first) + q * width;
        let a = partial_look_at_value(at.x, is_part.x);
        let b = partial_look_at_value(at.y, is_part.y);
        let c = partial_look_at_value(at.z, is_part.z);
        let d = partial_look_at_value(at.w, is_part.w);
        let near = apply(partial_take_value(at.x, is_part.x, a),
            partial_take_value(at.y, is_part.y, b));
        let far = apply(partial_take_value(at.z, is_part.z, c),
            partial_take_value(at.w, is_part.w, d));
        value = apply(value, apply(near, far));
    }
    return value;
}
