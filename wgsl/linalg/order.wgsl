// order[matrix, :] = the rows 0 to rows - 1, of which row k was exchanged with row pivots[k] - 1,
// one k after the other
//
// pivots  (count, steps)
// order   (count, rows)
// grid    one invocation per matrix
// turns   rows + steps

const WORKGROUP = 64u;

struct Params {
    pivots_offset: u32,
    count: u32,
    rows: u32,
    steps: u32,
}

@group(0) @binding(0) var<storage, read> pivots: array<i32>;
@group(0) @binding(1) var<storage, read_write> order: array<i32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_pivots(i: u32) -> i32 { return pivots[params.pivots_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let matrix = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (matrix >= params.count) {
        return;
    }
    let base = matrix * params.rows;
    for (var i = 0u; i < params.rows; i++) {
        order[base + i] = i32(i);
    }
    for (var k = 0u; k < params.steps; k++) {
        // A pivot of a stranger may name no row.
        let other = clamp(u32(load_pivots(matrix * params.steps + k) - 1), 0u, params.rows - 1u);
        let row = order[base + k];
        order[base + k] = order[base + other];
        order[base + other] = row;
    }
}
