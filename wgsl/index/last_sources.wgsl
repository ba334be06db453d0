// last[keys[s]] = max(s + 1)
//
// The number of the last source of each row, from 1 on; 0 where there is none, as index/segment_base
// left it. Then index/put_sources.
//
// keys   (sources)   u32; of a source that goes nowhere the largest u32
// last   (rows)      u32
// grid   one workgroup per WORKGROUP sources, one lane each

const WORKGROUP = 64u;

struct Params {
    keys_offset: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> last: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_keys(i: u32) -> u32 { return keys[params.keys_offset + i]; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let key = load_keys(k);
    if (key != 0xffffffffu) {
        atomicMax(&last[key], k + 1u);
    }
}
