// A lane's share of a row in registers, four elements in each of a few named variables.
//
// Element e of quad q stands in column place + (4q + e) * LANES, where place is the lane's among
// those of its row: neighbouring lanes read neighbouring words, and all loads of a row are under
// way at once. The kernel declares `const LANES`, `fn load_x(i: u32) -> f32` and a field `columns`
// in Params.

fn quad_columns(place: u32, quad: u32) -> vec4<u32> {
    return place + (vec4<u32>(0u, 1u, 2u, 3u) + 4u * quad) * LANES;
}

fn quad_inside(columns: vec4<u32>) -> vec4<bool> {
    return columns < vec4<u32>(params.columns);
}

// Past the end of the row it repeats the last element, so that no load waits for a branch.
fn quad_load(base: u32, columns: vec4<u32>) -> vec4<f32> {
    let at = base + min(columns, vec4<u32>(params.columns - 1u));
    return vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
}

// The sum of the elements inside the row.
fn quad_sum(values: vec4<f32>, columns: vec4<u32>) -> f32 {
    let inside = select(vec4<f32>(), values, quad_inside(columns));
    return (inside.x + inside.y) + (inside.z + inside.w);
}
