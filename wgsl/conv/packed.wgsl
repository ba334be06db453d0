// How convolutions read a weight whose bits they unpack: as if its rows were floats, one behind
// another
//
// packed_value(i)  element i of all of them
// packed_four(i)   elements i to i + 3, which lie in one row; i is a multiple of 4, as rows are long
//
// weight   the planes of a matrix: what meets one channel of the result is a row, or with
//          TRANSPOSED what meets one channel of x
// expects  dequantize_octet, of the format; KERNEL, TRANSPOSED; rows, channels, units in Params

fn packed_octet(row: u32, column: u32) -> array<vec4<f32>, 2> {
    return dequantize_octet(4u * params.units * row + column / 8u);
}

fn packed_columns() -> u32 {
    return select(params.channels, params.rows, TRANSPOSED) * KERNEL;
}

fn packed_four(i: u32) -> vec4<f32> {
    let columns = packed_columns();
    let row = i / columns;
    let column = i - row * columns;
    let octet = packed_octet(row, column);
    return select(octet[0], octet[1], (column & 4u) != 0u);
}

fn packed_value(i: u32) -> f32 {
    let columns = packed_columns();
    let row = i / columns;
    let column = i - row * columns;
    let octet = packed_octet(row, column);
    let four = select(octet[0], octet[1], (column & 4u) != 0u);
    let two = select(four.xy, four.zw, (column & 2u) != 0u);
    return select(two.x, two.y, (column & 1u) != 0u);
}
