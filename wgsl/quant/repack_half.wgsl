// plane of F16 or BF16 from rows of 16-bit numbers; the plane is that of quant/f16 and quant/bf16
//
// raw      (rows, columns) 16-bit numbers from word raw_offset
// out      the whole weight, rows padded to units; this launch fills units first to
//          first + units - 1
// grid     one invocation per unit of 32 columns; first is a row's
// source   IEEE 754-2019, 3.4
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
