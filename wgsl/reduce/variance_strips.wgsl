// out[o, i] = the sum of the squares of the distances of x[o, :, i] from its mean, as
//   wgsl/parts/fold/squares.wgsl has sums, of an axis whose neighbours lie apart
//
// Lanes take distances from the mean of the first rows of their part. What they add up to says how far that
// is from the mean, which is kept as its distance from the first element of all, so that no digits are lost.
// Where squares leave floats a lane reads its rows again, and all is divided by 2^84.
//
// x       (outer, reduced, inner)   contiguous
// out     (outer, inner)
// status  holds the parts on their way: mean and squares; see partials
// grid    one workgroup per outer, part and WIDTH neighbours in `inner`, which read neighbouring words: part p
//         takes r from p * chunk to (p + 1) * chunk; lanes WIDTH apart share an output, and the last
//         workgroup of a strip to finish puts its parts together
// fuses   x -> out
// turns   chunk * WIDTH // WORKGROUP + parts + 256
// uses    strip_fold, partial_fold, partials
// source  Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample
//         Variances", equation 2.1

// How many there are, their mean, and the squares: with a sign bit where mean and squares are divided.
alias T = vec3<f32>;
const WORKGROUP = 256u;
const WIDTH = 32u;
const WIDE = true;

struct Params {
    x_offset: u32,
    outputs: u32,
    reduced: u32,
    inner: u32,
    parts: u32,
    chunk: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@group(0) @binding(2) var<storage, read_write> status: array<atomic<u32>>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> f32 { return x[params.x_offset + i]; }
fn store_out(i: u32, value: f32) { out[i] = value; }
fn identity() -> T { return T(); }
fn to_bits(value: T) -> vec2<u32> { return bitcast<vec2<u32>>(value.yz); }
fn from_bits(bits: vec2<u32>) -> T { return T(0.0, bitcast<vec2<f32>>(bits)); }

// 2^-84: distances so divided have squares that are floats.
const DOWN = 5.169878828456423e-26;
// Below these, 2^40 and 2^80, as many as there may be add up within floats.
const NEAR = 1099511627776.0;
const NEAR_SQUARE = 1.2089258196146292e24;

fn is_divided(a: T) -> bool { return (bitcast<u32>(a.z) >> 31u) == 1u; }

fn divided(a: T) -> T {
    if (is_divided(a)) { return T(a.x, a.y, abs(a.z)); }
    return T(a.x, a.y * DOWN, (a.z * DOWN) * DOWN);
}

fn apply(a: T, b: T) -> T {
    if (a.x == 0.0) { return b; }
    if (b.x == 0.0) { return a; }
    let is_far = is_divided(a) || is_divided(b);
    var first = a;
    var second = b;
    if (is_far) {
        first = divided(a);
        second = divided(b);
    }
    let count = a.x + b.x;
    let share = b.x / count;
    let apart = second.y - first.y;
    let squares = first.z + second.z + apart * apart * (a.x * share);
    return T(count, first.y + apart * share, select(squares, -squares, is_far));
}

// One of those by which lanes know a mean.
const SHARE = 1.0 / f32(8u * STRIPS);

// Eight elements of a lane, STRIPS apart; past the end the last one comes again.
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}

fn quad_at(base: u32, rows: vec4<u32>, end: u32) -> vec4<f32> {
    let at = base + min(rows, vec4<u32>(end - 1u)) * params.inner;
    return vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
}

fn rows_of(r: u32) -> vec4<u32> { return r + vec4<u32>(0u, 1u, 2u, 3u) * STRIPS; }

fn eight_at(base: u32, r: u32, end: u32) -> Eight {
    return Eight(quad_at(base, rows_of(r), end), quad_at(base, rows_of(r + 4u * STRIPS), end));
}

fn whole_eight(base: u32, r: u32) -> Eight {
    let step = STRIPS * params.inner;
    let at = base + r * params.inner;
    let far = at + 4u * step;
    return Eight(vec4<f32>(load_x(at), load_x(at + step), load_x(at + 2u * step), load_x(at + 3u * step)),
        vec4<f32>(load_x(far), load_x(far + step), load_x(far + 2u * step), load_x(far + 3u * step)));
}

// The elements that are there, and `other` for the others.
fn inside_or(other: f32, values: vec4<f32>, rows: vec4<u32>, end: u32) -> vec4<f32> {
    return select(vec4<f32>(other), values, rows < vec4<u32>(end));
}

fn total_of(values: vec4<f32>) -> f32 { return (values.x + values.y) + (values.z + values.w); }

// Sums of distances and of their squares as a state about `origin`.
fn state_of(count: f32, origin: f32, sum: f32, squares: f32) -> T {
    let off = sum / count;
    let about = squares - sum * off;
    return T(count, origin + off, select(about, 0.0, about <= 0.0));
}

// A lane's rows, divided.
fn far_state(base: u32, first: u32, end: u32, count: f32, middle: f32, origin: f32) -> T {
    var sum = 0.0;
    var squares = 0.0;
    for (var r = first; r < end; r += STRIPS) {
        let apart = load_x(base + r * params.inner) * DOWN - middle * DOWN;
        sum += apart;
        squares += apart * apart;
    }
    let state = state_of(count, middle * DOWN - origin * DOWN, sum, squares);
    return T(state.x, state.y, -state.z);
}

// A lane's share: every STRIPS-th row from `first` on.
fn share(lane: u32, base: u32, first: u32, end: u32, origin: f32) -> T {
    let known = eight_at(base, first, end);
    let a_rows = rows_of(first);
    let b_rows = rows_of(first + 4u * STRIPS);
    let few = f32(min((end - min(first, end) + STRIPS - 1u) / STRIPS, 8u));
    // divided first, so that what the lanes have together is a float
    let near = total_of(inside_or(0.0, known.a * SHARE, a_rows, end))
        + total_of(inside_or(0.0, known.b * SHARE, b_rows, end));
    strips[lane] = T(few, near, 0.0);
    workgroupBarrier();
    var all = T();
    for (var k = 0u; k < STRIPS; k++) {
        all += strips[lane % WIDTH + k * WIDTH];
    }
    let middle = all.y * (1.0 / (SHARE * all.x));
    workgroupBarrier();  // strip_fold writes what was read
    let count = f32((end - min(first, end) + STRIPS - 1u) / STRIPS);
    if (count == 0.0) {
        return identity();
    }
    var a = inside_or(middle, known.a, a_rows, end) - middle;
    var b = inside_or(middle, known.b, b_rows, end) - middle;
    var sums = a + b;
    var squares = a * a + b * b;
    var r = first + 8u * STRIPS;
    for (; r + 7u * STRIPS < end; r += 8u * STRIPS) {
        let values = whole_eight(base, r);
        a = values.a - middle;
        b = values.b - middle;
        sums += a + b;
        squares += a * a + b * b;
    }
    if (r < end) {
        let values = eight_at(base, r, end);
        a = inside_or(middle, values.a, rows_of(r), end) - middle;
        b = inside_or(middle, values.b, rows_of(r + 4u * STRIPS), end) - middle;
        sums += a + b;
        squares += a * a + b * b;
    }
    let total = total_of(squares);
    if (total >= NEAR_SQUARE || abs(middle - origin) >= NEAR) {
        return far_state(base, first, end, count, middle, origin);
    }
    return state_of(count, middle - origin, total_of(sums), total);
}

// What a part left, with how many it has.
fn part_of(number: u32, part: u32) -> T {
    let seen = partial_look_at_value(number, true);
    let state = partial_take_value(number, true, seen);
    return T(f32(min((part + 1u) * params.chunk, params.reduced) - part * params.chunk), state.y, state.z);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = id.y * count.x + id.x;
    let tiles = (params.inner + WIDTH - 1u) / WIDTH;
    let part = (group / tiles) % params.parts;
    let outer = group / (tiles * params.parts);
    if (outer * params.inner >= params.outputs) {
        return;
    }
    let column = lane % WIDTH;
    let tile = group % tiles;
    let inner = tile * WIDTH + column;
    // lanes past the end take the last column, too: every word of a part is left and taken
    let base = outer * params.reduced * params.inner + min(inner, params.inner - 1u);
    let end = min((part + 1u) * params.chunk, params.reduced);
    var value = strip_fold(lane, share(lane, base, part * params.chunk + lane / WIDTH, end, load_x(base)));
    if (params.parts > 1u) {
        let counter = outer * tiles + tile;
        let first = counter * params.parts * WIDTH + column;
        if (lane < WIDTH) {
            partial_leave_value(first + part * WIDTH, value);
        }
        workgroupBarrier();  // no lane is counted whose stores are still to come
        if (!partial_is_last(lane, counter, params.parts)) {
            return;
        }
        var near = identity();
        for (var p = lane / WIDTH; p < params.parts; p += STRIPS) {
            near = apply(near, part_of(first + p * WIDTH, p));
        }
        value = strip_fold(lane, near);
    }
    if (lane < WIDTH && inner < params.inner) {
        store_out(outer * params.inner + inner, value.z);
    }
}
