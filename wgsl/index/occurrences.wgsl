// out[b] = how many elements of index are b; what lies outside does not count
//
// out is 0 before. With LOCAL a workgroup counts by itself first, so that few lanes wait for each other.
//
// index  (count,)    int64
// out    (bins,)     int64, below 2 to the 32: the low words are counted in
// grid   one workgroup per WORKGROUP * PER elements; a lane asks for four before it counts any
// turns  PER + BINS

const WORKGROUP = 256u;
const PER = 64u;
const LOCAL = true;
const BINS = 2048u;

struct Params {
    index_offset: u32,
    count: u32,
    bins: u32,
}

@group(0) @binding(0) var<storage, read> index: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_index(i: u32) -> vec2<u32> { return index[params.index_offset + i]; }

var<workgroup> tally: array<atomic<u32>, BINS>;

// Past the end it reads the last element again.
fn index_at(i: u32) -> vec2<u32> { return load_index(min(i, params.count - 1u)); }

fn occurs(i: u32, place: vec2<u32>) {
    if (i < params.count && place.y == 0u && place.x < params.bins) {
        if (LOCAL) {
            atomicAdd(&tally[place.x], 1u);
        } else {
            atomicAdd(&out[2u * place.x], 1u);
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let start = (id.y * count.x + id.x) * WORKGROUP * PER;
    if (LOCAL) {
        for (var b = lane; b < BINS; b += WORKGROUP) {
            atomicStore(&tally[b], 0u);
        }
        workgroupBarrier();
    }
    for (var k = 0u; k < PER; k += 4u) {
        let i = start + k * WORKGROUP + lane;
        let a = index_at(i);
        let b = index_at(i + WORKGROUP);
        let c = index_at(i + 2u * WORKGROUP);
        let d = index_at(i + 3u * WORKGROUP);
        occurs(i, a);
        occurs(i + WORKGROUP, b);
        occurs(i + 2u * WORKGROUP, c);
        occurs(i + 3u * WORKGROUP, d);
    }
    if (LOCAL) {
        workgroupBarrier();
        for (var b = lane; b < min(BINS, params.bins); b += WORKGROUP) {
            let found = atomicLoad(&tally[b]);
            if (found > 0u) {
                atomicAdd(&out[2u * b], found);
            }
        }
    }
}
