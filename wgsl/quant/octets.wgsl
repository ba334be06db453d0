// What products ask of a format besides dequantize_octet, for one that has nothing better: a unit is
// its 32 floats. They fill registers, so formats that are used much read their words later instead
//
// expects  dequantize_octet, of the format

const X_FACTORS = vec4<f32>(1.0);
const HAS_LOW = false;

struct Unit {
    octet_0: array<vec4<f32>, 2>,
    octet_1: array<vec4<f32>, 2>,
    octet_2: array<vec4<f32>, 2>,
    octet_3: array<vec4<f32>, 2>,
}

fn load_unit(unit: u32) -> Unit {
    return Unit(
        dequantize_octet(4u * unit),
        dequantize_octet(4u * unit + 1u),
        dequantize_octet(4u * unit + 2u),
        dequantize_octet(4u * unit + 3u),
    );
}

fn unpack_quad(unit: Unit, quad: u32) -> vec4<f32> {
    let is_last = (quad & 1u) != 0u;
    let first = select(unit.octet_0[0], unit.octet_0[1], is_last);
    let second = select(unit.octet_1[0], unit.octet_1[1], is_last);
    let third = select(unit.octet_2[0], unit.octet_2[1], is_last);
    let fourth = select(unit.octet_3[0], unit.octet_3[1], is_last);
    let is_odd = (quad & 2u) != 0u;
    return select(select(first, second, is_odd), select(third, fourth, is_odd), quad >= 4u);
}

fn combine(unit: Unit, place: u32, first: f32, last: f32, x_sum: f32) -> f32 {
    return first + last;
}
