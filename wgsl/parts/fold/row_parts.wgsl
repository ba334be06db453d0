// Parts of a row, of `chunk` columns each but for the last one.
//
// part_columns(part)         how many a part has
// part_total(lane, values)   the sum of four values per lane, known to every lane. Every lane must
//                            call it, in uniform control flow.
//
// The kernel declares `fn across_sum`, and `columns` and `chunk` in Params.

fn part_columns(part: u32) -> f32 {
    return f32(min((part + 1u) * params.chunk, params.columns) - part * params.chunk);
}

fn part_total(lane: u32, values: vec4<f32>) -> f32 {
    return across_sum(lane, (values.x + values.y) + (values.z + values.w));
}
