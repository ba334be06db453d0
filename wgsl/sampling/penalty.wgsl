// out[row, v] = x / penalty where x = logits[row, v] > 0, else x * penalty, if v is one of
//   ids[row, :]; else x
//
// logits  (rows, columns)   contiguous
// ids     (rows, seen)      int64, contiguous
// out     (rows, columns)
// grid    one workgroup per WORKGROUP elements of out, one lane each; it looks through the row's
//         ids
// source  Keskar et al. 2019, "CTRL", section 4.1

const WORKGROUP = 64u;

struct Params {
    logits_offset: u32,
    ids_offset: u32,
    count: u32,
    columns: u32,
    seen: u32,
    penalty: f32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> ids: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_logits(i: u32) -> f32 { return logits[params.logits_offset + i]; }
fn load_ids(i: u32) -> vec2<u32> { return ids[params.ids_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let row = k / params.columns;
    let column = k % params.columns;
    let value = load_logits(k);
    var result = value;
    for (var s = 0u; s < params.seen; s++) {
        if (load_ids(row * params.seen + s).x == column) {
            result = select(value * params.penalty, value / params.penalty, value > 0.0);
            break;
        }
    }
    store_out(k, result);
}
