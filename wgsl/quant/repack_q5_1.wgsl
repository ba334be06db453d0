// planes of Q5_1 from its GGUF bytes; the planes are those of quant/q5_1
//
// raw      rows of GGUF blocks from word raw_offset; a block is 24 bytes: halves d and m, 4 bytes
//          of fifth bits, 16 bytes of nibbles
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

const BLOCK = 24u;

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
    let block = unit * BLOCK;
    for (var i = 0u; i < 4u; i++) {
        out[4u * target_unit + i] = raw_word(block + 8u + 4u * i);
    }
    out[params.plane_1 + target_unit] = raw_word(block);
    out[params.plane_2 + target_unit] = transpose_fifths(raw_word(block + 4u));
}
