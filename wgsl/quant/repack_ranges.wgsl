// repack(unit, target_unit)  planes that are ranges of bytes of a GGUF block, one behind another: for
//                            one unit as many words of each as all units share
//
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, UNITS, BLOCK_BYTES, STARTS and SIZES, as quant/repack has them
// turns    4 planes, of each SIZES / 4 / UNITS words and one more
// uses     quant/raw

fn repack(unit: u32, target_unit: u32) {
    let blocks = params.units / UNITS;
    let starts = vec4<u32>(0u, params.plane_1, params.plane_2, params.plane_3);
    for (var plane = 0u; plane < 4u; plane++) {
        let size = SIZES[plane];
        // Launches begin at 16 blocks, thus at a word of every plane.
        let first = starts[plane] + (target_unit - unit) / UNITS * size / 4u;
        for (var word = unit; 4u * word < blocks * size; word += params.units) {
            out[first + word] = range_word(4u * word, blocks * size, size, STARTS[plane]);
        }
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
