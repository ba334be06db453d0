// repack(unit, target_unit)  the planes of Q8_0, those of quant/q8_0, for one unit, from its
//                            GGUF block
//
// block    34 bytes: half d, 32 signed bytes
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, as quant/repack has them
// turns  at most 32
// uses     quant/raw

const BLOCK = 34u;

fn repack(unit: u32, target_unit: u32) {
    let block = unit * BLOCK;
    for (var i = 0u; i < 8u; i++) {
        out[8u * target_unit + i] = raw_word(block + 2u + 4u * i);
    }
    if ((unit & 1u) == 0u) {
        var scales = raw_half(block);
        if (unit + 1u < params.units) {
            scales |= raw_half(block + BLOCK) << 16u;
        }
        out[params.plane_1 + (target_unit >> 1u)] = scales;
    }
}
