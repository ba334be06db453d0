// state[row, part] = (m, s): the mean of one part of a row, 0 without CENTRED, and the sum of the
//   squares of the distances from it
//
// First of two steps for rows so long that one workgroup per row leaves the GPU idle.
//
// x      (rows, columns)    contiguous
// state  (rows, parts, 2)   part p holds the columns from p * chunk to (p + 1) * chunk
// grid   one workgroup per row and part; with QUADS = 4 registers hold a part of 16 * WORKGROUP columns, else
//        lanes stride over its columns, twice with CENTRED
// fuses  x ->
// turns  chunk // WORKGROUP // 2 + 256
// uses   row_quads

const WORKGROUP = 256u;
const LANES = WORKGROUP;
const QUADS = 4u;
const CENTRED = true;

struct Params {
    x_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> state: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

fn before_end(values: vec4<f32>, columns: vec4<u32>, end: u32) -> vec4<f32> {
    return select(vec4<f32>(), values, columns < vec4<u32>(end));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.parts) {
        return;
    }
    let base = group / params.parts * params.columns;
    let begin = group % params.parts * params.chunk;
    let end = min(begin + params.chunk, params.columns);
    var mean = 0.0;
    var squares = vec4<f32>();
    if (QUADS > 0u) {
        let a_columns = quad_columns(begin + lane, 0u);
        let b_columns = quad_columns(begin + lane, 1u);
        let c_columns = quad_columns(begin + lane, 2u);
        let d_columns = quad_columns(begin + lane, 3u);
        var a = quad_load(base, a_columns);
        var b = quad_load(base, b_columns);
        var c = quad_load(base, c_columns);
        var d = quad_load(base, d_columns);
        if (CENTRED) {
            let values = (before_end(a, a_columns, end) + before_end(b, b_columns, end))
                + (before_end(c, c_columns, end) + before_end(d, d_columns, end));
            mean = part_total(lane, values) / part_columns(group % params.parts);
        }
        a -= mean;
        b -= mean;
        c -= mean;
        d -= mean;
        squares = (before_end(a * a, a_columns, end) + before_end(b * b, b_columns, end))
            + (before_end(c * c, c_columns, end) + before_end(d * d, d_columns, end));
    } else {
        if (CENTRED) {
            var values = vec4<f32>();
            for (var first = begin + lane; first < end; first += 4u * WORKGROUP) {
                let columns = quad_columns(first, 0u);
                values += before_end(quad_load(base, columns), columns, end);
            }
            mean = part_total(lane, values) / part_columns(group % params.parts);
        }
        for (var first = begin + lane; first < end; first += 4u * WORKGROUP) {
            let columns = quad_columns(first, 0u);
            let distances = quad_load(base, columns) - mean;
            squares += before_end(distances * distances, columns, end);
        }
    }
    let total = part_total(lane, squares);
    if (lane == 0u) {
        state[group * 2u] = mean;
        state[group * 2u + 1u] = total;
    }
}
