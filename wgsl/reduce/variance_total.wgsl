// out[o] = the sum of the squares of the distances of x[o, :] from its mean, as
//   wgsl/parts/fold/squares.wgsl has sums, of those of its parts
//
// Second of two steps; see reduce/variance_parts.
//
// state  (outer, parts, 3)   means, what these leave out, and sums; part p has `chunk` columns, the last
//        one what is left
// out    (outer)
// grid   one workgroup per row; its lanes stride over the parts, twice
// turns  parts // WORKGROUP * 2 + 256
// uses   squares, workgroup_fold
// source Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample
//        Variances"

alias T = f32;
const WORKGROUP = 256u;
// Squares of smaller distances add up within floats: 2^57.
const NEAR = 1.4411518807585587e17;

struct Params {
    outputs: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> state: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_state(i: u32) -> f32 { return state[i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn apply(a: T, b: T) -> T { return squares_added(a, b); }

// The lengths of four parts, 0 past the last one.
fn lengths_of(parts: vec4<u32>) -> vec4<f32> {
    let rest = params.columns - min(parts * params.chunk, vec4<u32>(params.columns));
    return vec4<f32>(min(rest, vec4<u32>(params.chunk)));
}

// Number k of four states. Past the last part it comes again, so that no load waits for a branch.
fn states_of(base: u32, parts: vec4<u32>, k: u32) -> vec4<f32> {
    let at = base + 3u * min(parts, vec4<u32>(params.parts - 1u)) + k;
    return vec4<f32>(load_state(at.x), load_state(at.y), load_state(at.z), load_state(at.w));
}

// What a part adds to the sum about a mean, from which its own is `apart`, if that is a float.
fn one_of(own: f32, apart: f32, sum: f32, length: f32, mean: f32) -> f32 {
    if (length == 0.0) { return 0.0; }
    let square = select(square_of(own, mean, 1.0), apart * apart, abs(apart) < NEAR);
    return squares_added(sum, squares_times(square, length));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = id.y * count.x + id.x;
    if (row >= params.outputs) {
        return;
    }
    let base = 3u * row * params.parts;
    let share = 1.0 / f32(params.columns);
    var near = vec4<f32>();
    for (var part = lane; part < params.parts; part += 4u * WORKGROUP) {
        let parts = part + vec4<u32>(0u, 1u, 2u, 3u) * WORKGROUP;
        near += states_of(base, parts, 0u) * (lengths_of(parts) * share);
    }
    let mean = workgroup_sum(lane, (near.x + near.y) + (near.z + near.w));
    var squares = 0.0;
    var rests = vec4<f32>();
    for (var part = lane; part < params.parts; part += 4u * WORKGROUP) {
        let parts = part + vec4<u32>(0u, 1u, 2u, 3u) * WORKGROUP;
        let own = states_of(base, parts, 0u);
        let apart = (own - mean) + states_of(base, parts, 1u);
        let sums = states_of(base, parts, 2u);
        let lengths = lengths_of(parts);
        rests += apart * lengths;
        squares = squares_added(squares, one_of(own.x, apart.x, sums.x, lengths.x, mean));
        squares = squares_added(squares, one_of(own.y, apart.y, sums.y, lengths.y, mean));
        squares = squares_added(squares, one_of(own.z, apart.z, sums.z, lengths.z, mean));
        squares = squares_added(squares, one_of(own.w, apart.w, sums.w, lengths.w, mean));
    }
    squares = workgroup_fold(lane, squares);
    // `mean` is rounded, too. Of numbers so far apart that their squares leave floats nothing is seen of it.
    let rest = workgroup_sum(lane, (rests.x + rests.y) + (rests.z + rests.w));
    if (lane == 0u) {
        let about = squares - rest * (rest * share);
        store_out(row, select(select(about, 0.0, about < 0.0), squares, squares < 0.0));
    }
}
