// repack(unit, target_unit)  the plane of F16 or BF16, that of quant/f16 and quant/bf16, for one
//                            unit, from a row of 16-bit numbers
//
// source   IEEE 754-2019, 3.4
// expects  out and Params, as quant/repack has them
// turns  at most 32
// uses     quant/raw

fn repack(unit: u32, target_unit: u32) {
    let units = (params.columns + 31u) >> 5u;
    let row = unit / units;
    let column = (unit - row * units) << 5u;
    for (var i = 0u; i < 16u; i++) {
        var word = 0u;
        let left = column + 2u * i;
        if (left < params.columns) {
            word = raw_half(2u * (row * params.columns + left));
        }
        if (left + 1u < params.columns) {
            word |= raw_half(2u * (row * params.columns + left + 1u)) << 16u;
        }
        out[16u * target_unit + i] = word;
    }
}
