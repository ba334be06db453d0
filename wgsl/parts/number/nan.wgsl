// is_nan(x)        whether x is NaN, by its bits: WGSL lets a compiler assume that there are none
// ordered(a, b)    whether neither is NaN: comparisons must not rely on what a compiler makes of NaN
// nan_max(a, b)    the larger; NaN if one is NaN
// nan_min(a, b)    the smaller; NaN if one is NaN
// nan_of_infinite(x)  x, and NaN in place of an infinite one
// not_defined(x)   NaN, of an x that no constant folding knows: compilers refuse one of constants

fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn ordered(a: f32, b: f32) -> bool { return !is_nan(a) && !is_nan(b); }

fn nan_max(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan(b)), a, is_nan(a)); }

fn nan_min(a: f32, b: f32) -> f32 { return select(select(min(a, b), b, is_nan(b)), a, is_nan(a)); }

fn nan_of_infinite(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    return bitcast<f32>(select(bits, bits | 0x400000u, (bits & 0x7fffffffu) == 0x7f800000u));
}
fn not_defined(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | 0x7fc00000u); }
