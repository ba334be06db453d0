// column_pair(round, pair, side)     the two columns that meet in a round of a sweep; `side` for the
//                                    one that is none where side is odd
// power_below(x)                     the largest power of 2 that is not above a number that is not 0
// jacobi_angle(first, second, both)  (sine, tangent of half the angle) of the rotation that makes
//                                    [[first, both], [both, second]] diagonal
// jacobi_turn(x, y, angle)           the rows or columns x and y, rotated
//
// The tangent of half the angle lets small angles round little, where cosines near 1 would make
// columns longer or shorter with every sweep.
// source  Rutishauser 1966, "The Jacobi method for real symmetric matrices"

// One column stays where it is, the others move round a circle; those that face each other meet.
fn column_pair(round: u32, pair: u32, side: u32) -> vec2<u32> {
    let places = max(side + (side & 1u), 2u) - 1u;
    let ahead = round % places;
    return vec2<u32>(
        (ahead + pair) % places,
        select((ahead + places - pair) % places, places, pair == 0u),
    );
}

fn power_below(x: f32) -> f32 {
    let power = bitcast<f32>(bitcast<u32>(x) & 0x7f800000u);
    return select(1.0, power, power > 0.0);
}

fn jacobi_angle(first: f32, second: f32, both: f32) -> vec2<f32> {
    let zeta = (second - first) / (2.0 * both);
    let size = abs(zeta);
    let positive = select(1.0 / (size + sqrt(1.0 + size * size)), 0.5 / max(size, 1.0), size > 1e6);
    let tangent = select(positive, -positive, zeta < 0.0);
    let half = tangent / (1.0 + sqrt(1.0 + tangent * tangent));
    return vec2<f32>(2.0 * half / (1.0 + half * half), half);
}

fn jacobi_turn(x: f32, y: f32, angle: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(x - angle.x * (y + angle.y * x), y + angle.x * (x - angle.y * y));
}
