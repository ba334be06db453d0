// repack(unit, target_unit)  planes that are ranges of bytes of a GGUF block, one behind another: for
//                            one unit as many words of each as all units share
//
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, UNITS, BLOCK_BYTES, STARTS and SIZES, as quant/repack has them
// turns    4 planes, of each SIZES / 4 / UNITS words and one more
// uses     quant/raw

fn repack(unit: u32, target_unit: u32) {
    // One call per plane: its size is a constant there, so nothing is divided by a variable.
    repack_plane(unit, target_unit, 0u, SIZES.x, STARTS.x);
    repack_plane(unit, target_unit, params.plane_1, SIZES.y, STARTS.y);
    repack_plane(unit, target_unit, params.plane_2, SIZES.z, STARTS.z);
    repack_plane(unit, target_unit, params.plane_3, SIZES.w, STARTS.w);
}

fn repack_plane(unit: u32, target_unit: u32, plane: u32, size: u32, start: u32) {
    let bytes = params.units / UNITS * size;
    // Launches begin at 16 blocks, thus at a word of every plane.
    let first = plane + (target_unit - unit) / UNITS * size / 4u;
    for (var word = unit; 4u * word < bytes; word += params.units) {
        out[first + word] = range_word(4u * word, bytes, size, start);
    }
}

// Four bytes of a plane, from byte `at` of `count`; a block has `size` of them, from `start`.
fn range_word(at: u32, count: u32, size: u32, start: u32) -> u32 {
    if (size % 4u == 0u) {
        return raw_word(at / size * BLOCK_BYTES + start + at % size);
    }
    var word = 0u;
    for (var byte = 0u; byte < min(count - at, 4u); byte++) {
        let place = at + byte;
        word |= raw_byte(place / size * BLOCK_BYTES + start + place % size) << (8u * byte);
    }
    return word;
}
