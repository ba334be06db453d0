// out[o] = the sum of the squares of the distances of x[o, :] from its mean, as
//   wgsl/parts/fold/squares.wgsl has sums, of long rows
//
// A workgroup walks a part of a row in tiles, and takes distances from the mean of the first one. What
// they add up to says how far that is from the mean of the part. Of n tiles the squares are at most n
// times as large as about the part's own mean, so log2(n) / 2 bits of a deviation may go, and none where
// tiles are alike. Where squares leave floats the part is walked again, about its own mean. The last
// workgroup of a row to finish puts the parts together.
//
// x       (outputs, columns)   contiguous
// out     (outputs)
// status  holds the parts on their way: their means, as m + c, and their sums; see partials
// grid    one workgroup per row and part, which has `chunk` columns, whole tiles; a row has up to
//         4 * WORKGROUP parts
// fuses   x -> out
// turns   chunk // WORKGROUP + 512
// uses    squares, workgroup_fold, workgroup_sum, partials
// source  Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample
//         Variances"

alias T = vec3<f32>;
const WORKGROUP = 256u;

struct Params {
    x_offset: u32,
    outputs: u32,
    columns: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn apply(a: T, b: T) -> T { return a + b; }

const TILE = 16u * WORKGROUP;
// Sums of a part, divided so, stay floats.
const DOWN = 3.814697265625e-06;
// Squares of smaller distances, and sums of a lane's, add up within floats: 2^57 and 2^118.
const NEAR = 1.4411518807585587e17;
const NEAR_SUM = 3.323069989381245e35;

// Sixteen elements of a lane, WORKGROUP apart.
struct Tile {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

var<workgroup> leaves_floats: bool;

fn four(base: u32, column: u32, length: u32) -> vec4<f32> {
    let columns = column + vec4<u32>(0u, 1u, 2u, 3u) * WORKGROUP;
    // past the end the last one again, so that no load waits for a branch
    let at = base + min(columns, vec4<u32>(length - 1u));
    return vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
}

fn whole_four(at: u32) -> vec4<f32> {
    return vec4<f32>(load_x(at), load_x(at + WORKGROUP), load_x(at + 2u * WORKGROUP),
        load_x(at + 3u * WORKGROUP));
}

fn tile(base: u32, column: u32, length: u32) -> Tile {
    return Tile(four(base, column, length), four(base, column + 4u * WORKGROUP, length),
        four(base, column + 8u * WORKGROUP, length), four(base, column + 12u * WORKGROUP, length));
}

// Of four elements their distances from a mean; 0 past the end.
fn apart(values: vec4<f32>, column: u32, length: u32, mean: f32) -> vec4<f32> {
    let columns = column + vec4<u32>(0u, 1u, 2u, 3u) * WORKGROUP;
    return select(vec4<f32>(mean), values, columns < vec4<u32>(length)) - mean;
}

fn distances(values: Tile, column: u32, length: u32, mean: f32) -> Tile {
    return Tile(apart(values.a, column, length, mean),
        apart(values.b, column + 4u * WORKGROUP, length, mean),
        apart(values.c, column + 8u * WORKGROUP, length, mean),
        apart(values.d, column + 12u * WORKGROUP, length, mean));
}

fn total_of(values: vec4<f32>) -> f32 { return (values.x + values.y) + (values.z + values.w); }

// A lane's share of a mean; divided first, so that no compiler divides after it has added up.
fn share_of(base: u32, lane: u32, length: u32) -> f32 {
    var sum = 0.0;
    for (var column = lane; column < length; column += WORKGROUP) {
        sum += select(0.0, load_x(base + column) * DOWN, column < length);
    }
    return sum;
}

fn mean_of(lane: u32, base: u32, length: u32) -> f32 {
    return workgroup_sum(lane, share_of(base, lane, length)) * (1.0 / (DOWN * f32(length)));
}

// The squares of a lane's elements, one by one.
fn far_squares(base: u32, lane: u32, length: u32, mean: f32) -> f32 {
    var sum = 0.0;
    for (var column = lane; column < length; column += WORKGROUP) {
        sum = squares_added(sum, square_of(load_x(base + column), mean, 1.0));
    }
    return sum;
}

fn leave(number: u32, value: f32) {
    let bits = bitcast<u32>(value);
    partial_leave(2u * number, 0x10000u | (bits & 0xffffu));
    partial_leave(2u * number + 1u, 0x10000u | (bits >> 16u));
}

fn look(number: u32) -> vec2<u32> {
    return vec2<u32>(partial_look(2u * number), partial_look(2u * number + 1u));
}

fn take(number: u32, seen: vec2<u32>) -> f32 {
    let low = partial_take(2u * number, seen.x);
    return bitcast<f32>((low & 0xffffu) | (partial_take(2u * number + 1u, seen.y) << 16u));
}

// What one of the parts left: its mean as x + y, and the sum z.
fn part_of(row: u32, part: u32) -> vec3<f32> {
    var state = vec3<f32>();
    if (part < params.parts) {
        let number = 3u * (row * params.parts + part);
        let x_seen = look(number);
        let y_seen = look(number + 1u);
        let z_seen = look(number + 2u);
        state = vec3<f32>(take(number, x_seen), take(number + 1u, y_seen), take(number + 2u, z_seen));
    }
    return state;
}

fn length_of(part: u32) -> f32 {
    return f32(min(params.columns - min(part * params.chunk, params.columns), params.chunk));
}

// What a part adds about a mean: to the sum, and to what says how far that mean is off.
fn moved(state: vec3<f32>, length: f32, mean: f32) -> vec2<f32> {
    if (length == 0.0) { return vec2<f32>(); }
    let off = (state.x - mean) + state.y;
    let square = select(square_of(state.x, mean, 1.0), off * off, abs(off) < NEAR);
    return vec2<f32>(squares_added(state.z, squares_times(square, length)), off * length);
}

fn together(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(squares_added(a.x, b.x), a.y + b.y);
}

// The sum of the lanes' squares, and of what else they have: both kinds of squares apart, which no branch
// holds up.
fn across(lane: u32, squares: f32, rest: f32) -> vec2<f32> {
    let is_far = squares < 0.0 || squares >= NEAR_SUM;
    let all = workgroup_fold(lane, vec3<f32>(select(squares, 0.0, is_far),
        select(0.0, squares_far(squares), is_far), rest));
    return vec2<f32>(squares_added(all.x, -all.y), all.z);
}

// The sum about the mean itself, of one about a number that is off. Of numbers so far apart that their
// squares leave floats nothing is seen of it; NaN stays.
fn about_mean(squares: f32, rest: f32, off: f32) -> f32 {
    let about = squares - rest * off;
    return select(select(about, 0.0, about < 0.0), squares, squares < 0.0);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    if (group >= params.outputs * params.parts) {
        return;
    }
    let row = group / params.parts;
    let begin = group % params.parts * params.chunk;
    let length = min(params.chunk, params.columns - begin);
    let base = row * params.columns + begin;
    let values = tile(base, lane, length);
    let first = min(length, TILE);
    let small = Tile(values.a * DOWN, values.b * DOWN, values.c * DOWN, values.d * DOWN);
    let down = distances(small, lane, length, 0.0);
    let near = (total_of(down.a) + total_of(down.b)) + (total_of(down.c) + total_of(down.d));
    var mean = workgroup_sum(lane, near) * (1.0 / (DOWN * f32(first)));
    var sums = vec4<f32>();
    var rests = vec4<f32>();
    var most = vec4<f32>();
    var now = distances(values, lane, length, mean);
    for (var start = TILE; start < length + TILE; start += TILE) {
        // the next tile is under way while this one is added up
        let at = base + start + lane;
        var next = Tile();
        if (start + TILE <= length) {
            next = Tile(whole_four(at), whole_four(at + 4u * WORKGROUP), whole_four(at + 8u * WORKGROUP),
                whole_four(at + 12u * WORKGROUP));
        }
        sums += (now.a * now.a + now.b * now.b) + (now.c * now.c + now.d * now.d);
        rests += (now.a + now.b) + (now.c + now.d);
        most = max(most, max(max(abs(now.a), abs(now.b)), max(abs(now.c), abs(now.d))));
        if (start + TILE <= length) {
            now = Tile(next.a - mean, next.b - mean, next.c - mean, next.d - mean);
        } else if (start < length) {
            now = distances(tile(base, start + lane, length), start + lane, length, mean);
        }
    }
    let sum = total_of(sums);
    let is_far = max(max(most.x, most.y), max(most.z, most.w)) >= NEAR || sum >= NEAR_SUM;
    let all = workgroup_fold(lane, vec3<f32>(sum, select(0.0, 1.0, is_far), total_of(rests)));
    var off = all.z / f32(length);
    var squares = about_mean(all.x, all.z, off);
    if (lane == 0u) {
        leaves_floats = all.y > 0.0;
    }
    if (workgroupUniformLoad(&leaves_floats)) {
        mean = mean_of(lane, base, length);
        off = 0.0;
        squares = across(lane, far_squares(base, lane, length, mean), 0.0).x;
    }
    if (params.parts == 1u) {
        if (lane == 0u) {
            store_out(row, squares);
        }
        return;
    }
    if (lane == 0u) {
        leave(3u * group, mean);
        leave(3u * group + 1u, off);
        leave(3u * group + 2u, squares);
    }
    if (!partial_is_last(lane, row, params.parts)) {
        return;
    }
    let a = part_of(row, lane);
    let b = part_of(row, lane + WORKGROUP);
    let c = part_of(row, lane + 2u * WORKGROUP);
    let d = part_of(row, lane + 3u * WORKGROUP);
    let lengths = vec4<f32>(length_of(lane), length_of(lane + WORKGROUP),
        length_of(lane + 2u * WORKGROUP), length_of(lane + 3u * WORKGROUP));
    let share = 1.0 / f32(params.columns);
    let weights = lengths * share;
    let whole = workgroup_sum(lane,
        (a.x * weights.x + b.x * weights.y) + (c.x * weights.z + d.x * weights.w));
    let own = together(
        together(moved(a, lengths.x, whole), moved(b, lengths.y, whole)),
        together(moved(c, lengths.z, whole), moved(d, lengths.w, whole)));
    let total = across(lane, own.x, own.y);
    if (lane == 0u) {
        store_out(row, about_mean(total.x, total.y, total.y * share));
    }
}
