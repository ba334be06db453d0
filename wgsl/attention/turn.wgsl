// The rotary embedding of one column: value * cos(angle) - partner * sin(angle) for the first
//   column of a pair, value * cos(angle) + partner * sin(angle) for the second
//
// The pair p is (p, p + half) of a head, or (2p, 2p + 1) with INTERLEAVED; columns from 2 * half on
// are left as they are.
//
// expects  const INTERLEAVED, half in Params, load_cosines, load_sines
// source   Su et al. 2021, "RoFormer", equation 34

// The other column of the pair of column d, the place of its angle, and the sign of its sine.
struct Pair {
    partner: u32,
    angle: u32,
    sign: f32,
}

fn pair_of(d: u32, position: u32) -> Pair {
    var number = d % params.half;
    var is_first = d < params.half;
    var partner = select(d - params.half, d + params.half, is_first);
    if (INTERLEAVED) {
        number = d / 2u;
        is_first = d % 2u == 0u;
        partner = select(d - 1u, d + 1u, is_first);
    }
    return Pair(partner, position * params.half + number, select(1.0, -1.0, is_first));
}

fn turned(value: f32, partner: f32, pair: Pair) -> f32 {
    return fma(partner, pair.sign * load_sines(pair.angle), value * load_cosines(pair.angle));
}
