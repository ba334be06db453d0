// planes of Q4_K from its GGUF bytes; the planes are those of quant/q4_k
//
// raw      rows of GGUF blocks from word raw_offset; a block is 144 bytes: halves d and dmin, 12
//          bytes of scales and lows, 128 bytes of nibbles
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

const BLOCK = 144u;

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
    for (var i = 0u; i < 4u; i++) {
        let at = block + 16u + 32u * (part >> 1u) + 4u * i;
        out[4u * target_unit + i] = pair_nibbles(at, (part & 1u) != 0u);
    }
    if (part < 4u) {
        out[params.plane_1 + 4u * (target_unit >> 3u) + part] = raw_word(block + 4u * part);
    }
}
