// unit_root(k, n, step)  exp(-2 pi i k / n), k below n, n at most 2^28
//
// The angle is reduced to an eighth of a turn by integers, so that none is large. step is pi / (4 n) as two
// floats, the second what the first lacks; what is rounded off the angle is put back to first order.

fn unit_root(k: u32, n: u32, step: vec2<f32>) -> vec2<f32> {
    let eighth = (8u * k) / n;
    let over = 8u * k - eighth * n;
    let r = f32(select(over, n - over, (eighth & 1u) == 1u));
    let angle = r * step.x;
    let rest = fma(r, step.x, -angle) + r * step.y;
    let s0 = sin_small(angle);
    let c0 = cos_small(angle);
    let s = fma(rest, c0, s0);
    let c = fma(-rest, s0, c0);
    let swapped = ((eighth + 1u) & 2u) != 0u;
    let x = select(c, s, swapped);
    let y = select(s, c, swapped);
    return vec2<f32>(select(x, -x, ((eighth + 2u) & 4u) != 0u), select(-y, y, eighth >= 4u));
}
