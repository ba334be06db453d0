// Where a lane's elements lie in planes: one column, in four lines one below the other, of which only the first
// is found by a division. TILE lanes lie side by side.
//
// expects  consts WORKGROUP and TILE; lines (of all planes), tiles (side by side) and out_height in Params

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
