// repack(unit, target_unit)  the planes of Q4_1, those of quant/q4_1, for one unit, from its
//                            GGUF block
//
// block    20 bytes: halves d and m, 16 bytes of nibbles
// source   gguf.quants of the PyPI package `gguf`
// expects  out and Params, as quant/repack has them
// turns  at most 32
// uses     quant/raw

const BLOCK = 20u;

fn repack(unit: u32, target_unit: u32) {
    let block = unit * BLOCK;
    for (var i = 0u; i < 4u; i++) {
        out[4u * target_unit + i] = raw_word(block + 4u + 4u * i);
    }
    out[params.plane_1 + target_unit] = raw_word(block);
}
