// state[row, part] = (m, s): the maximum of one part of a row, and the sum of
//   exp((x - m) / temperature)
//
// First of two steps of a draw from a row so long that one workgroup would take its time; see
// random/draw.
//
// values  (rows, columns)   contiguous
// state   (rows, parts, 2)   part p holds the columns from p * chunk to (p + 1) * chunk
// grid    one workgroup per row and part; lanes stride over its columns
// turns   2 * (chunk // WORKGROUP + 1) + 256
// uses    sampling_weight

const WORKGROUP = 256u;

struct Params {
    values_offset: u32,
    rows: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
    temperature: f32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> state: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_values(i: u32) -> f32 { return values[params.values_offset + i]; }
fn across_max(lane: u32, value: f32) -> f32 { return workgroup_max(lane, value); }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.parts) {
        return;
    }
    let base = group / params.parts * params.columns;
    let start = base + group % params.parts * params.chunk;
    let end = min(start + params.chunk, base + params.columns);
    var largest = -3.4028234e38;
    for (var i = start + lane; i < end; i += WORKGROUP) {
        largest = max(largest, load_values(i));
    }
    largest = across_max(lane, largest);
    var mass = 0.0;
    for (var i = start + lane; i < end; i += WORKGROUP) {
        mass += sampling_weight((load_values(i) - largest) / params.temperature);
    }
    mass = across_sum(lane, mass);
    if (lane == 0u) {
        state[group * 2u] = largest;
        state[group * 2u + 1u] = mass;
    }
}
