// planes of Q6_K from its GGUF bytes; the planes are those of quant/q6_k
//
// raw      rows of GGUF blocks from word raw_offset; a block is 210 bytes: 128 bytes of nibbles, 64
//          bytes of pairs, 16 signed scales, half d
// out      every plane of the whole weight; this launch fills units first to first + units - 1
// grid     one invocation per unit of 32 columns; first is a multiple of 16 (so no word is shared
//          with another launch)
// source   gguf.quants of the PyPI package `gguf`
// uses     quant/raw

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

struct Params {
    units: u32,
    first: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    columns: u32,
    raw_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

const BLOCK = 210u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (unit >= params.units) {
        return;
    }
    let target_unit = params.first + unit;
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
