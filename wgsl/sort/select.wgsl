// order[row, b, :] = the places of the first `keep` entries of span b of a row, in the order of their values
//
// Every step of a top-k that keeps few: `keep` rounds, each of which finds the first entry behind the
// one before. Reads the span `keep` times instead of sorting it. Ties go by place. Missing places
// are 0xffffffff and come last.
//
// x       (rows, columns)         contiguous; `apply` turns a value into bits, high word first
// places  (rows, entries)         u32, the places to choose from; read only with HAS_PLACES, else
//         all columns (entries = columns)
// order   (rows, pitch)           u32, span b from b * keep
// grid    one workgroup per row and span of BLOCK entries
// uses    order

alias T = f32;
const BLOCK = 8192u;
const WORKGROUP = 256u;
const HAS_PLACES = false;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    x_offset: u32,
    places_offset: u32,
    groups: u32,
    columns: u32,
    entries: u32,
    blocks: u32,
    keep: u32,
    pitch: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> order: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> u32 { return places[params.places_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

var<workgroup> best_keys: array<vec2<u32>, WORKGROUP>;
var<workgroup> best_places: array<u32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.groups) {
        return;
    }
    let row = group / params.blocks;
    let start = group % params.blocks * BLOCK;
    let stop = min(start + BLOCK, params.entries);
    let first = group % params.blocks * params.keep;
    var last_key = vec2<u32>(0u, 0u);
    var last_place = 0u;
    for (var round = 0u; round < params.keep; round++) {
        var key = vec2<u32>(0xffffffffu, 0xffffffffu);
        var place = 0xffffffffu;
        for (var i = start + lane; i < stop; i += WORKGROUP) {
            var next_place = i;
            if (HAS_PLACES) {
                next_place = load_places(row * params.entries + i);
            }
            if (next_place < params.columns) {
                let next_key = order_key(apply(load_x(row * params.columns + next_place)));
                if ((round == 0u || order_before(last_key, last_place, next_key, next_place))
                    && order_before(next_key, next_place, key, place)) {
                    key = next_key;
                    place = next_place;
                }
            }
        }
        best_keys[lane] = key;
        best_places[lane] = place;
        for (var half = WORKGROUP / 2u; half > 0u; half = half / 2u) {
            workgroupBarrier();
            if (lane < half && order_before(best_keys[lane + half], best_places[lane + half],
                best_keys[lane], best_places[lane])) {
                best_keys[lane] = best_keys[lane + half];
                best_places[lane] = best_places[lane + half];
            }
        }
        workgroupBarrier();
        last_key = best_keys[0];
        last_place = best_places[0];
        if (lane == 0u && first + round < params.pitch) {
            order[row * params.pitch + first + round] = last_place;
        }
        workgroupBarrier();
    }
}
