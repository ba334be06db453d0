// Where a lane's elements lie in planes: one column, in four lines one below the other, of which only the first
// is found by a division. TILE lanes lie side by side.
//
// write_lines(group, lane)   the elements of a lane: of four lines all are made before the first is stored
//
// expects  consts WORKGROUP and TILE; lines (of all planes), tiles (side by side), out_height and out_width in
//          Params; `alias Column`, what lines share of a column, `fn of_column(column: u32) -> Column`, and
//          `fn element(at: vec2<u32>, column: Column)` for the (plane, row) of a line; `fn store_out`
// turns    4 times what `element` takes

// (column, first line)
fn column_and_line(group: u32, lane: u32) -> vec2<u32> {
    var below = group;
    var across = 0u;
    if (params.tiles > 1u) {
        below = group / params.tiles;
        across = group - below * params.tiles;
    }
    return vec2<u32>(across * TILE + lane % TILE, 4u * (below * (WORKGROUP / TILE) + lane / TILE));
}

// (plane, row)
fn plane_and_row(line: u32) -> vec2<u32> {
    let plane = line / params.out_height;
    return vec2<u32>(plane, line - plane * params.out_height);
}

fn row_below(at: vec2<u32>) -> vec2<u32> {
    let row = at.y + 1u;
    return select(vec2<u32>(at.x, row), vec2<u32>(at.x + 1u, 0u), row == params.out_height);
}

fn write_lines(group: u32, lane: u32) {
    let place = column_and_line(group, lane);
    if (place.x >= params.out_width) {
        return;
    }
    let column = of_column(place.x);
    let first = place.y * params.out_width + place.x;
    var at = plane_and_row(place.y);
    if (place.y + 3u < params.lines) {
        let at_1 = row_below(at);
        let at_2 = row_below(at_1);
        let at_3 = row_below(at_2);
        let value_0 = element(at, column);
        let value_1 = element(at_1, column);
        let value_2 = element(at_2, column);
        let value_3 = element(at_3, column);
        store_out(first, value_0);
        store_out(first + params.out_width, value_1);
        store_out(first + 2u * params.out_width, value_2);
        store_out(first + 3u * params.out_width, value_3);
        return;
    }
    for (var k = 0u; place.y + k < params.lines; k++) {
        store_out(first + k * params.out_width, element(at, column));
        at = row_below(at);
    }
}
