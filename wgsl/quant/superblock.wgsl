// superblock_scales(unit)  (d * scale, dmin * low) of one unit of a Q4_K or Q5_K superblock
//
// A superblock is 8 units of 32 columns. Its header of four words lies in plane 1: the halves d and
// dmin in word 0, then twelve bytes of 6-bit scales and lows: unit u < 4 has scale and low in the
// low 6 bits of bytes u and u + 4; unit u >= 4 has their low 4 bits in the nibbles of byte u + 4
// and their high 2 bits in the top of bytes u - 4 and u. Both products are exact in f32 (11 + 6
// bits).
//
// uses  quant/unpack

fn superblock_scales(unit: u32) -> vec2<f32> {
    let header = plane_row((plane_start(1u) >> 2u) + (unit >> 3u));
    let shift = (unit & 3u) << 3u;
    let a = (header.y >> shift) & 0xffu;
    let b = (header.z >> shift) & 0xffu;
    let c = (header.w >> shift) & 0xffu;
    let late = (unit & 4u) != 0u;
    let scale = select(a & 63u, (c & 15u) | ((a >> 2u) & 48u), late);
    let low = select(b & 63u, (c >> 4u) | ((b >> 2u) & 48u), late);
    return word_halves(header.x) * vec2<f32>(f32(scale), f32(low));
}
