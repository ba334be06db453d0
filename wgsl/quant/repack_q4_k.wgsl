// repack(unit, target_unit)  the planes of Q4_K, those of quant/q4_k, for one unit, from its
//                            GGUF block
//
// block    144 bytes: halves d and dmin, 12 bytes of scales and lows, 128 bytes of nibbles
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, as quant/repack has them
// turns  at most 32
// uses     quant/raw

const BLOCK = 144u;

fn repack(unit: u32, target_unit: u32) {
    let block = (unit >> 3u) * BLOCK;
    let part = unit & 7u;
    for (var i = 0u; i < 4u; i++) {
        let at = block + 16u + 32u * (part >> 1u) + 4u * i;
        out[4u * target_unit + i] = pair_nibbles(at, (part & 1u) != 0u);
    }
    if (part < 4u) {
        out[params.plane_1 + 4u * (target_unit >> 3u) + part] = raw_word(block + 4u * part);
    }
}
