// Merges neighbouring sorted runs of each row: every place finds its rank in the other run by
//   bisection.
//
// x       (rows, columns)   contiguous; `apply` turns a value into bits, high word first
// places  (rows, columns)   u32, sorted in runs of `run` entries
// order   (rows, columns)   u32, sorted in runs of 2 * run
// grid    one workgroup per WORKGROUP entries, one lane each
// turns   64
// uses    order

alias T = f32;
const WORKGROUP = 64u;
const FLOAT = true;
const SIGNED = false;
const DESCENDING = false;

struct Params {
    x_offset: u32,
    places_offset: u32,
    count: u32,
    columns: u32,
    run: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> order: array<u32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_places(i: u32) -> u32 { return places[params.places_offset + i]; }
fn apply(value: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(value), 0u); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let base = k / params.columns * params.columns;
    let column = k - base;
    let start = column / (2u * params.run) * 2u * params.run;
    let middle = min(start + params.run, params.columns);
    let is_left = column < middle;
    let place = load_places(k);
    let key = order_key(apply(load_x(base + place)));
    var low = select(start, middle, is_left);
    var high = select(middle, min(middle + params.run, params.columns), is_left);
    let other = low;
    while (low < high) {
        let probe = (low + high) / 2u;
        let candidate = load_places(base + probe);
        if (order_before(order_key(apply(load_x(base + candidate))), candidate, key, place)) {
            low = probe + 1u;
        } else {
            high = probe;
        }
    }
    let own = column - select(middle, start, is_left);
    order[base + start + own + (low - other)] = place;
}
