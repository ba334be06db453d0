// values[row, j] = x[row, order[row, j]],  indices[row, j] = order[row, j]
//
// x        (rows, columns)   contiguous
// order    (rows, entries)   u32
// values   (rows, keep)      keep <= entries
// indices  (rows, keep)      U: u32, or int64
// grid     one workgroup per WORKGROUP elements, one lane each

alias T = f32;
alias U = u32;
const WORKGROUP = 64u;

struct Params {
    x_offset: u32,
    order_offset: u32,
    count: u32,
    columns: u32,
    entries: u32,
    keep: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> order: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<T>;
@group(0) @binding(3) var<storage, read_write> indices: array<U>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_order(i: u32) -> u32 { return order[params.order_offset + i]; }
fn result(place: u32) -> U { return place; }
fn store_values(i: u32, value: T) { values[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let row = k / params.keep;
    let place = load_order(row * params.entries + k % params.keep);
    store_values(k, load_x(row * params.columns + place));
    indices[k] = result(place);
}
