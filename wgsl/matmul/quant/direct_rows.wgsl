// What matmul/quant/direct_vector, quant_direct_vectors and quant_direct_pair share: an invocation
// multiplies four rows of a weight by one row of x
//
// row_sums   the four products. The rows go unit by unit; a quad of x serves all of them
//
// expects  const PADDED (the last unit of a row reaches past the columns); columns and units in
//          Params; load_x, load_units, and a file of quant/
//
// turns  its units

const ROWS = 4u;

// The same unit of four rows of the weight.
struct Units {
    row_0: Unit,
    row_1: Unit,
    row_2: Unit,
    row_3: Unit,
}

// x at a column, zero past the end.
fn column_of_x(column: u32) -> f32 {
    if (PADDED && column >= params.columns) {
        return 0.0;
    }
    return load_x(column);
}

// Columns column to column + 3 of x, with the factors that the format's numbers lack.
fn quad_of_x(column: u32) -> vec4<f32> {
    return X_FACTORS * vec4<f32>(
        column_of_x(column), column_of_x(column + 1u),
        column_of_x(column + 2u), column_of_x(column + 3u));
}

// The products of one quad of columns of four units with x.
fn products(units: Units, quad: u32, x_quad: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        dot(unpack_quad(units.row_0, quad), x_quad),
        dot(unpack_quad(units.row_1, quad), x_quad),
        dot(unpack_quad(units.row_2, quad), x_quad),
        dot(unpack_quad(units.row_3, quad), x_quad),
    );
}

// The products of four rows, whose first units are given.
fn row_sums(rows: vec4<u32>) -> vec4<f32> {
    var sums = vec4<f32>();
    for (var unit = 0u; unit < params.units; unit++) {
        let units = load_units(rows + unit);
        let column = 32u * unit;
        let x_0 = quad_of_x(column);
        let x_1 = quad_of_x(column + 4u);
        let x_2 = quad_of_x(column + 8u);
        let x_3 = quad_of_x(column + 12u);
        let x_4 = quad_of_x(column + 16u);
        let x_5 = quad_of_x(column + 20u);
        let x_6 = quad_of_x(column + 24u);
        let x_7 = quad_of_x(column + 28u);
        let first = (products(units, 0u, x_0) + products(units, 1u, x_1))
            + (products(units, 2u, x_2) + products(units, 3u, x_3));
        let last = (products(units, 4u, x_4) + products(units, 5u, x_5))
            + (products(units, 6u, x_6) + products(units, 7u, x_7));
        var x_sum = 0.0;
        if (HAS_LOW) {
            x_sum = dot(((x_0 + x_1) + (x_2 + x_3)) + ((x_4 + x_5) + (x_6 + x_7)), 1.0 / X_FACTORS);
        }
        sums += vec4<f32>(
            combine(units.row_0, unit & 7u, first.x, last.x, x_sum),
            combine(units.row_1, unit & 7u, first.y, last.y, x_sum),
            combine(units.row_2, unit & 7u, first.z, last.z, x_sum),
            combine(units.row_3, unit & 7u, first.w, last.w, x_sum),
        );
    }
    return sums;
}
