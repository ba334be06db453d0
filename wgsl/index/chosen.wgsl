// out[ends[i] - 1, c] = x[i, c]   where ends[i] is larger than the one before: the rows that are chosen
//   (SPREAD: out[i, c] = x[ends[i] - 1, c] there, else 0)
//
// x      (rows, inner)    contiguous; with SPREAD (places, inner)
// ends   (rows,)          int32, the running sum of what is chosen
// out    (places, inner)  with SPREAD (rows, inner)
// grid   one workgroup per 4 * WORKGROUP elements of all rows; a lane makes four, WORKGROUP apart
// turns  4

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

// Where an element of the rows stands among those that are chosen, if its row is.
struct Place {
    is_chosen: bool,
    other: u32,
}

fn place_of(k: u32) -> Place {
    // divisions take longer than all else
    var row = k;
    if (params.inner > 1u) { row = k / params.inner; }
    let end = u32(load_ends(row));
    let before = select(u32(load_ends(max(row, 1u) - 1u)), 0u, row == 0u);
    let is_chosen = end > before && end <= params.places;
    return Place(is_chosen, (end - 1u - row) * params.inner + k);
}

// What goes to the other side: of rows every element, of those that are chosen only theirs.
fn value_at(k: u32, place: Place) -> T {
    if (!SPREAD) {
        return load_x(k);
    }
    var value = T();
    if (place.is_chosen) {
        value = load_x(place.other);
    }
    return value;
}

fn put(k: u32, place: Place, value: T) {
    if (SPREAD) {
        store_out(k, value);
    } else if (place.is_chosen) {
        store_out(place.other, value);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (4u * WORKGROUP) + lane;
    if (first + 3u * WORKGROUP < params.count) {
        let a = place_of(first);
        let b = place_of(first + WORKGROUP);
        let c = place_of(first + 2u * WORKGROUP);
        let d = place_of(first + 3u * WORKGROUP);
        let a_value = value_at(first, a);
        let b_value = value_at(first + WORKGROUP, b);
        let c_value = value_at(first + 2u * WORKGROUP, c);
        let d_value = value_at(first + 3u * WORKGROUP, d);
        put(first, a, a_value);
        put(first + WORKGROUP, b, b_value);
        put(first + 2u * WORKGROUP, c, c_value);
        put(first + 3u * WORKGROUP, d, d_value);
        return;
    }
    for (var k = first; k < params.count; k += WORKGROUP) {
        let place = place_of(k);
        put(k, place, value_at(k, place));
    }
}
