// planes of a weight from the rows of a file
//
// raw      rows from word raw_offset: GGUF blocks, or 16-bit numbers
// out      every plane of the whole weight; this launch fills units first to first + units - 1
// grid     one invocation per unit of 32 columns; first is a row's, and for blocks a multiple of 16
//          (so no word is shared with another launch)
// format   quant/repack_ranges stands for any file of quant/ with its function
// turns    64
// uses     quant/repack_ranges

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

// What quant/repack_ranges asks for: units and bytes of a block, and of its planes where in a block
// they begin, and how many bytes of it they are.
const UNITS = 1u;
const BLOCK_BYTES = 18u;
const STARTS = vec4<u32>(2u, 0u, 0u, 0u);
const SIZES = vec4<u32>(16u, 2u, 0u, 0u);

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let unit = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (unit < params.units) {
        repack(unit, params.first + unit);
    }
}
