// superblock_header(unit)          the header of the Q4_K or Q5_K superblock that a unit lies in
// superblock_scales(header, unit)  (d * scale, dmin * low) of the unit, given by its number or by
//                                  its place among the 8 of the superblock
//
// A superblock is 8 units of 32 columns. Its header of four words lies in plane 1: the halves d and
// dmin in word 0, then twelve bytes of 6-bit scales and lows: unit u < 4 has scale and low in the
// low 6 bits of bytes u and u + 4; unit u >= 4 has their low 4 bits in the nibbles of byte u + 4
// and their high 2 bits in the top of bytes u - 4 and u. Both products are exact in f32 (11 + 6
// bits).
//
// uses  quant/unpack

fn superblock_header(unit: u32) -> vec4<u32> {
    return plane_row((plane_start(1u) >> 2u) + (unit >> 3u));
}

fn superblock_scales(header: vec4<u32>, unit: u32) -> vec2<f32> {
    let shift = (unit & 3u) << 3u;
    let late = (unit & 4u) != 0u;
    // What `late` decides is the same for all rows that a lane works on.
    let near = select(63u, 15u, late);
    let top = select(0u, 48u, late);
    let a = select(header.y, header.w, late) >> shift;
    let b = select(header.z, header.w, late) >> select(shift, shift + 4u, late);
    let scale = (a & near) | ((header.y >> (shift + 2u)) & top);
    let low = (b & near) | ((header.z >> (shift + 2u)) & top);
    return word_halves(header.x) * vec2<f32>(f32(scale), f32(low));
}
