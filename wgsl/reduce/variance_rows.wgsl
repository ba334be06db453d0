// out[o] = the sum of the squares of the distances of x[o, :] from its mean, as
//   wgsl/parts/fold/squares.wgsl has sums, of rows that registers hold
//
// Distances are from a mean that is rounded; what they add up to says how far it is from the mean. Without
// that the variance of numbers near 10^5 with a deviation of 0.05 would be 3 % off.
//
// x      (outputs, columns)   contiguous
// out    (outputs)
// grid   one workgroup per WORKGROUP / LANES rows; LANES lanes share a row: every element is read once,
//        columns <= 4 * QUADS * LANES
// fuses  x -> out
// turns  256
// uses   squares, workgroup_fold

alias T = vec3<f32>;
const WORKGROUP = 256u;
const LANES = WORKGROUP;
const QUADS = 4u;

struct Params {
    x_offset: u32,
    outputs: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }
fn across_sum(lane: u32, value: f32) -> f32 { return workgroup_sum(lane, value); }
fn across_fold(lane: u32, value: T) -> T { return workgroup_fold(lane, value); }

// Sums of parts, divided so, stay floats.
const DOWN = 1.0 / 8192.0;
// Squares of smaller distances, and sums of a lane's, add up within floats: 2^57 and 2^118.
const NEAR = 1.4411518807585587e17;
const NEAR_SUM = 3.323069989381245e35;

// Element e of quad q stands in column place + (4q + e) * LANES.
fn columns_of(place: u32, quad: u32) -> vec4<u32> {
    return place + (vec4<u32>(0u, 1u, 2u, 3u) + 4u * quad) * LANES;
}

// Past the end it repeats the last element, so that no load waits for a branch.
fn loaded(base: u32, columns: vec4<u32>, length: u32) -> vec4<f32> {
    let at = base + min(columns, vec4<u32>(length - 1u));
    return vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
}

// A lane's elements, and `other` past the end.
fn inside_or(other: f32, values: vec4<f32>, columns: vec4<u32>, length: u32) -> vec4<f32> {
    return select(vec4<f32>(other), values, columns < vec4<u32>(length));
}

fn total_of(values: vec4<f32>) -> f32 { return (values.x + values.y) + (values.z + values.w); }

// The squares of a lane's elements, one by one.
fn far_squares(base: u32, place: u32, length: u32, mean: f32) -> f32 {
    var sum = 0.0;
    for (var column = place; column < length; column += LANES) {
        sum = squares_added(sum, square_of(load_x(base + column), mean, 1.0));
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * (WORKGROUP / LANES);
    if (first >= params.outputs) {
        return;
    }
    let group = first + lane / LANES;
    let known = min(group, params.outputs - 1u);
    let length = params.columns;
    let base = known * length;
    let place = lane % LANES;
    let a_columns = columns_of(place, 0u);
    let b_columns = columns_of(place, 1u);
    let c_columns = columns_of(place, 2u);
    let d_columns = columns_of(place, 3u);
    var a = loaded(base, a_columns, length);
    var b = vec4<f32>();
    var c = vec4<f32>();
    var d = vec4<f32>();
    if (QUADS > 1u) { b = loaded(base, b_columns, length); }
    if (QUADS > 2u) { c = loaded(base, c_columns, length); }
    if (QUADS > 3u) { d = loaded(base, d_columns, length); }
    // what is selected no compiler divides after it has added it up
    let near = (total_of(inside_or(0.0, a * DOWN, a_columns, length))
        + total_of(inside_or(0.0, b * DOWN, b_columns, length)))
        + (total_of(inside_or(0.0, c * DOWN, c_columns, length))
        + total_of(inside_or(0.0, d * DOWN, d_columns, length)));
    let mean = across_sum(lane, near) * (1.0 / (DOWN * f32(length)));
    a = inside_or(mean, a, a_columns, length) - mean;
    b = inside_or(mean, b, b_columns, length) - mean;
    c = inside_or(mean, c, c_columns, length) - mean;
    d = inside_or(mean, d, d_columns, length) - mean;
    let most = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    var sum = (total_of(a * a) + total_of(b * b)) + (total_of(c * c) + total_of(d * d));
    if (max(max(most.x, most.y), max(most.z, most.w)) >= NEAR) {
        sum = far_squares(base, place, length, mean);
    }
    // both kinds of sums apart, which no branch holds up
    let is_far = sum < 0.0 || sum >= NEAR_SUM;
    let rest = (total_of(a) + total_of(b)) + (total_of(c) + total_of(d));
    let all = across_fold(lane, vec3<f32>(select(sum, 0.0, is_far),
        select(0.0, squares_far(sum), is_far), select(rest, 0.0, is_far)));
    // a lane that is far leaves out its share, without which the rest says nothing
    let off = select(0.0, all.z / f32(length), all.y == 0.0);
    let about = all.x - all.z * off;
    // NaN stays
    let squares = squares_added(select(about, 0.0, about < 0.0), -all.y);
    if (place == 0u && group < params.outputs) {
        store_out(group, squares);
    }
}
