// How formats read weights whose columns name their groups: weight = d * (q - zero), with an f32 d and
// a zero point for each group of columns of a row
//
// plane 0  quants  numbers of BITS bits
// plane 1  scales  one word per unit of 32 columns: that many groups of a row there may be
// plane 2  zeros   one u16 per unit
// plane 3  groups  one u16 per column, the same for all rows
// source   GPTQ, as AutoGPTQ (nn_modules/qlinear) stores it with desc_act
// expects  BITS, of the format; plane_row, plane_word and plane_start, as quant/planes has them
// uses     quant/bits, quant/octets

// Columns that name these groups, of the row whose first unit is given.
fn of_groups(unit: u32, groups: vec4<u32>, numbers: vec4<f32>) -> vec4<f32> {
    let first = group_of(unit + groups.x);
    if (all(groups == groups.xxxx)) {
        return first.x * (numbers - first.y);
    }
    let second = group_of(unit + groups.y);
    let third = group_of(unit + groups.z);
    let fourth = group_of(unit + groups.w);
    return vec4<f32>(first.x, second.x, third.x, fourth.x)
        * (numbers - vec4<f32>(first.y, second.y, third.y, fourth.y));
}

// The scale and the zero point of a group.
fn group_of(i: u32) -> vec2<f32> {
    let zeros = plane_word(plane_start(2u) + (i >> 1u));
    let zero = (zeros >> ((i & 1u) << 4u)) & 0xffffu;
    return vec2<f32>(bitcast<f32>(plane_word(plane_start(1u) + i)), f32(zero));
}

fn dequantize_octet(octet: u32) -> array<vec4<f32>, 2> {
    let row = octet / (4u * params.units);
    let words = plane_row((plane_start(3u) >> 2u) + octet - 4u * params.units * row);
    let even = words & vec4<u32>(0xffffu);
    let odd = words >> vec4<u32>(16u);
    let numbers = octet_numbers(octet);
    let unit = row * params.units;
    return array<vec4<f32>, 2>(
        of_groups(unit, vec4<u32>(even.x, odd.x, even.y, odd.y), numbers[0]),
        of_groups(unit, vec4<u32>(even.z, odd.z, even.w, odd.w), numbers[1]),
    );
}
