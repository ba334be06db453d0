// state[row, part] = (m, s, t, u) of one part of a row: its mean, 0 without CENTRED, and the sums of
//   the squares of the distances from it, of h = g[row, :] * weight, and of h times the distances
//
// First of two steps for rows so long that one workgroup per row leaves the GPU idle.
//
// g       (rows, columns)    contiguous
// x       (rows, columns)    contiguous
// weight  (columns)          read only with HAS_WEIGHT
// state   (rows, parts, 4)   part p holds the columns from p * chunk to (p + 1) * chunk
// grid    one workgroup per row and part; lanes stride over its columns, twice with CENTRED
// turns   chunk // WORKGROUP // 2 + 256
// uses    row_quads

const WORKGROUP = 256u;
const LANES = WORKGROUP;
const HAS_WEIGHT = true;
const CENTRED = true;

struct Params {
    g_offset: u32,
    x_offset: u32,
    weight_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> g: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_g(i: u32) -> f32 { return g[params.g_offset + i]; }
fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn load_weight(i: u32) -> f32 { return weight[params.weight_offset + i]; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

fn weighted(base: u32, column: u32) -> f32 {
    let value = load_g(base + column);
    if (HAS_WEIGHT) {
        return value * load_weight(column);
    }
    return value;
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
    if (CENTRED) {
        var values = vec4<f32>();
        for (var first = begin + lane; first < end; first += 4u * WORKGROUP) {
            let columns = quad_columns(first, 0u);
            values += select(vec4<f32>(), quad_load(base, columns), columns < vec4<u32>(end));
        }
        mean = part_total(lane, values) / part_columns(group % params.parts);
    }
    var squares = vec4<f32>();
    var gradients = vec4<f32>();
    var products = vec4<f32>();
    for (var first = begin + lane; first < end; first += 4u * WORKGROUP) {
        let columns = quad_columns(first, 0u);
        let near = min(columns, vec4<u32>(end - 1u));
        let inside = columns < vec4<u32>(end);
        let distances = select(vec4<f32>(), quad_load(base, columns) - mean, inside);
        let loaded = vec4<f32>(weighted(base, near.x), weighted(base, near.y),
            weighted(base, near.z), weighted(base, near.w));
        let gradient = select(vec4<f32>(), loaded, inside);
        squares += distances * distances;
        gradients += gradient;
        products += gradient * distances;
    }
    let square = part_total(lane, squares);
    let total = part_total(lane, gradients);
    let product = part_total(lane, products);
    if (lane == 0u) {
        state[group * 4u] = mean;
        state[group * 4u + 1u] = square;
        state[group * 4u + 2u] = total;
        state[group * 4u + 3u] = product;
    }
}
