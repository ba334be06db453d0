// out[row, v] = x / penalty where x = logits[row, v] > 0, else x * penalty, if v is one of
//   ids[row, :]; else x
//
// logits  (rows, columns)   contiguous
// ids     (rows, seen)      int64, contiguous
// out     (rows, columns)
// grid    one workgroup per row and block of BLOCK columns: its lanes look through the row's ids
//         together and mark those of the block, then stride over the block
// turns   seen // WORKGROUP + 2 * BLOCK // WORKGROUP + 2
// source  Keskar et al. 2019, "CTRL", section 4.1

const WORKGROUP = 256u;
const BLOCK = 1024u;

struct Params {
    logits_offset: u32,
    ids_offset: u32,
    rows: u32,
    columns: u32,
    blocks: u32,
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

var<workgroup> marks: array<atomic<u32>, BLOCK / 32u>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.rows * params.blocks) {
        return;
    }
    let row = group / params.blocks;
    let start = group % params.blocks * BLOCK;
    let length = min(BLOCK, params.columns - start);
    for (var word = lane; word < BLOCK / 32u; word += WORKGROUP) {
        atomicStore(&marks[word], 0u);
    }
    workgroupBarrier();
    for (var s = lane; s < params.seen; s += WORKGROUP) {
        let seen = load_ids(row * params.seen + s);
        if (seen.y == 0u && seen.x >= start && seen.x - start < length) {
            let place = seen.x - start;
            atomicOr(&marks[place / 32u], 1u << (place % 32u));
        }
    }
    workgroupBarrier();
    for (var place = lane; place < length; place += WORKGROUP) {
        let k = row * params.columns + start + place;
        var value = load_logits(k);
        if (((atomicLoad(&marks[place / 32u]) >> (place % 32u)) & 1u) == 1u) {
            value = select(value * params.penalty, value / params.penalty, value > 0.0);
        }
        store_out(k, value);
    }
}
