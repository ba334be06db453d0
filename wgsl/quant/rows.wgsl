// out[i, :] = weight[indices[i], :] as f32, the embedding of a quantized table
//
// indices  (count) row numbers of the whole table, 64 bits, low word first
// weight   planes of rows `start` to start + rows - 1 of a table of `limit` rows; a table in
//          several buffers takes a launch for each, and each fills the rows it holds
// out      (count, columns)
// status   a bad index is written here once: 1, op, low word, high word, limit; its row is zero
// grid     one invocation per octet of 8 columns of an index
// format   quant/q4_0 stands for any file of quant/ with its two functions
// fuses    -> out
// turns    64
// uses     status, quant/q4_0, quant/halves_direct, quant/planes

@group(0) @binding(0) var<storage, read> indices: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;

struct Params {
    count: u32,
    start: u32,
    rows: u32,
    limit: u32,
    columns: u32,
    units: u32,
    plane_1: u32,
    plane_2: u32,
    plane_3: u32,
    op: u32,
    indices_offset: u32,
}
@group(1) @binding(0) var<uniform> params: Params;

const WORKGROUP = 64u;

fn load_indices(i: u32) -> vec2<u32> { return indices[params.indices_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let item = (id.y * count.x + id.x) * WORKGROUP + lane;
    let octets = 4u * params.units;
    let i = item / octets;
    if (i >= params.count) {
        return;
    }
    let octet = item - i * octets;
    let column = 8u * octet;
    let index = load_indices(i);
    let row = index.x - params.start;
    let good = index.y == 0u && index.x < params.limit;
    if (good && (index.x < params.start || row >= params.rows)) {
        return;  // another buffer holds it
    }
    if (!good && params.start != 0u) {
        return;  // the launch of the first rows reports it
    }
    if (!good && octet == 0u) {
        report_index(params.op, index, params.limit);
    }
    var values = array<vec4<f32>, 2>();
    if (good) {
        values = dequantize_octet(row * octets + octet);
    }
    for (var k = 0u; k < 8u; k++) {
        if (column + k < params.columns) {
            store_out(i * params.columns + column + k, values[k >> 2u][k & 3u]);
        }
    }
}
