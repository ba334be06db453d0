// out[ends[i] - 1, c] = x[i, c]   where ends[i] is larger than the one before: the rows that are chosen
//   (SPREAD: out[i, c] = x[ends[i] - 1, c] there, else 0)
//
// x      (rows, inner)    contiguous; with SPREAD (places, inner)
// ends   (rows,)          int32, the running sum of what is chosen
// out    (places, inner)  with SPREAD (rows, inner)
// grid   one workgroup per WORKGROUP elements of all rows, one lane each

alias T = f32;
const WORKGROUP = 64u;
const SPREAD = false;

struct Params {
    x_offset: u32,
    ends_offset: u32,
    count: u32,
    inner: u32,
    places: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> ends: array<i32>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn load_ends(i: u32) -> i32 { return ends[params.ends_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let k = (id.y * count.x + id.x) * WORKGROUP + lane;
    if (k >= params.count) {
        return;
    }
    let row = k / params.inner;
    let end = u32(load_ends(row));
    var before = 0u;
    if (row > 0u) {
        before = u32(load_ends(row - 1u));
    }
    let is_chosen = end > before && end <= params.places;
    let other = (end - 1u) * params.inner + k % params.inner;
    if (SPREAD) {
        var value = T();
        if (is_chosen) {
            value = load_x(other);
        }
        store_out(k, value);
    } else if (is_chosen) {
        store_out(other, load_x(k));
    }
}
