// repack(unit, target_unit)  the planes of Q6_K, those of quant/q6_k, for one unit, from its
//                            GGUF block
//
// block    210 bytes: 128 bytes of nibbles, 64 bytes of pairs, 16 signed scales, half d
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, as quant/repack has them
// turns  at most 32
// uses     quant/raw

const BLOCK = 210u;

fn repack(unit: u32, target_unit: u32) {
    let block = (unit >> 3u) * BLOCK;
    let part = unit & 7u;
    let side = part >> 2u;
    for (var i = 0u; i < 4u; i++) {
        let at = block + 64u * side + 32u * (part & 1u) + 4u * i;
        out[4u * target_unit + i] = pair_nibbles(at, (part & 2u) != 0u);
    }
    for (var i = 0u; i < 2u; i++) {
        var tops = 0u;
        for (var column = 0u; column < 16u; column++) {
            let byte = raw_byte(block + 128u + 32u * side + 16u * i + column);
            let pair = (byte >> (2u * (part & 3u))) & 3u;
            tops |= pair << (8u * (column & 3u) + 2u * (column >> 2u));
        }
        out[params.plane_1 + 2u * target_unit + i] = tops;
    }
    if ((part & 1u) == 0u) {
        out[params.plane_2 + (target_unit >> 1u)] = raw_word(block + 192u + 2u * part);
    }
    if ((unit & 15u) == 0u) {
        var supers = raw_half(block + 208u);
        if (unit + 8u < params.units) {
            supers |= raw_half(block + BLOCK + 208u) << 16u;
        }
        out[params.plane_3 + (target_unit >> 4u)] = supers;
    }
}
