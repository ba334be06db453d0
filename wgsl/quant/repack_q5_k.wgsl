// repack(unit, target_unit)  the planes of Q5_K, those of quant/q5_k, for one unit, from its
//                            GGUF block
//
// block    176 bytes: halves d and dmin, 12 bytes of scales and lows, 32 bytes of fifth bits, 128
//          bytes of nibbles
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, as quant/repack has them
// turns  at most 32
// uses     quant/raw

const BLOCK = 176u;

fn repack(unit: u32, target_unit: u32) {
    let block = (unit >> 3u) * BLOCK;
    let part = unit & 7u;
    for (var i = 0u; i < 4u; i++) {
        let at = block + 48u + 32u * (part >> 1u) + 4u * i;
        out[4u * target_unit + i] = pair_nibbles(at, (part & 1u) != 0u);
    }
    var fifth = 0u;
    for (var column = 0u; column < 32u; column++) {
        fifth |= ((raw_byte(block + 16u + column) >> part) & 1u) << column;
    }
    out[params.plane_2 + target_unit] = transpose_fifths(fifth);
    if (part < 4u) {
        out[params.plane_1 + 4u * (target_unit >> 3u) + part] = raw_word(block + 4u * part);
    }
}
