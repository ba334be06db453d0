// Transforms of four complex numbers: of which any power of two is made, in passes.
//
// four_transformed(four, by)  of a, b, c and d, of which the last three are multiplied before
// four_further(by, b, c, d)   roots times sixteenths of a turn
// root_turned(root)           a root of the other direction with INVERSE
// SIXTEENTH, ...              exp(-2 pi i k / 16), k being 1, 2, 3, 4, 6 and 9
//
// The kernel declares `const INVERSE`.
//
// source  C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7
// uses    complex

const SIXTEENTH = vec2<f32>(0.92387953, -0.38268343);
const TWO_SIXTEENTHS = vec2<f32>(0.70710678, -0.70710678);
const THREE_SIXTEENTHS = vec2<f32>(0.38268343, -0.92387953);
const FOUR_SIXTEENTHS = vec2<f32>(0.0, -1.0);
const SIX_SIXTEENTHS = vec2<f32>(-0.70710678, -0.70710678);
const NINE_SIXTEENTHS = vec2<f32>(-0.92387953, 0.38268343);

struct Four {
    a: vec2<f32>,
    b: vec2<f32>,
    c: vec2<f32>,
    d: vec2<f32>,
}

fn root_turned(root: vec2<f32>) -> vec2<f32> { return select(root, vec2<f32>(root.x, -root.y), INVERSE); }

fn four_transformed(four: Four, by: Four) -> Four {
    let b = complex_mul(by.b, four.b);
    let c = complex_mul(by.c, four.c);
    let d = complex_mul(by.d, four.d);
    let even = four.a + c;
    let odd = four.a - c;
    let sum = b + d;
    let apart = select(vec2<f32>(b.y - d.y, d.x - b.x), vec2<f32>(d.y - b.y, b.x - d.x), INVERSE);
    return Four(even + sum, odd + apart, even - sum, odd - apart);
}

fn four_further(by: Four, b: vec2<f32>, c: vec2<f32>, d: vec2<f32>) -> Four {
    return Four(by.a, complex_mul(by.b, root_turned(b)), complex_mul(by.c, root_turned(c)),
        complex_mul(by.d, root_turned(d)));
}
