// out[o, k] = scale * sum_j exp(-+2 pi i j k / N) * x[o, j]
//
// As fft/pass_4 with all passes in one dispatch, for rows of a power of two that workgroup memory
// holds: every element is read once and written once. The last pass is one of twos where N is no
// power of four.
// With REAL rows of 2 N real numbers are transformed as N complex ones, of which the first half of
// their spectrum is made: with z[k] = even[k] + i odd[k], out[k] = even[k] + exp(-pi i k / N) odd[k].
//
// x     (rows, N)   contiguous; with REAL (rows, 2 N)
// out   (rows, N)   with REAL (rows, N + 1)
// grid  one workgroup per ROWS rows; a lane makes EACH times four elements of a row
// turns 64
//
// source  C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7

alias T = vec2<f32>;
const N = 1024u;
const ROWS = 1u;
// 1, 2 or 4
const EACH = 1u;
const INVERSE = false;
const REAL = false;

const QUARTER = N / 4u;
const LANES = QUARTER / EACH;
const WORKGROUP = LANES * ROWS;

struct Params {
    rows: u32,
    x_offset: u32,
    step_high: f32,
    step_low: f32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(1) @binding(0) var<uniform> params: Params;

fn load_x(i: u32) -> T { return x[params.x_offset + i]; }
fn store_out(i: u32, value: T) { out[i] = value; }

// Both are padded, so that few neighbours meet in a bank, whatever power of two lies between them.
var<workgroup> held: array<vec2<f32>, N * ROWS * 9u / 8u>;
// The first quarter of the N-th roots of 1.
var<workgroup> roots: array<vec2<f32>, QUARTER + QUARTER / 16u + QUARTER / 256u>;

// Elements a quarter of the row apart.
struct Four {
    a: vec2<f32>,
    b: vec2<f32>,
    c: vec2<f32>,
    d: vec2<f32>,
}

// The k-th of the N-th roots of 1, of the first three quarters.
fn factor(k: u32) -> vec2<f32> {
    let root = roots[root_place(k % QUARTER)];
    let quarters = k / QUARTER;
    let turned = select(vec2<f32>(root.y, -root.x), vec2<f32>(-root.y, root.x), INVERSE);
    return select(select(root, turned, quarters == 1u), -root, quarters == 2u);
}

fn root_place(k: u32) -> u32 { return k + k / 16u + k / 256u; }

fn padded(i: u32) -> u32 { return i + i / 8u; }

fn loaded(i: u32) -> vec2<f32> {
    if (REAL) {
        return vec2<f32>(load_x(2u * i).x, load_x(2u * i + 1u).x);
    }
    return load_x(i);
}

fn first_four(base: u32, j: u32) -> Four {
    return Four(loaded(base + j), loaded(base + j + QUARTER), loaded(base + j + 2u * QUARTER),
        loaded(base + j + 3u * QUARTER));
}

fn take(at: u32, j: u32) -> Four {
    return Four(held[padded(at + j)], held[padded(at + j + QUARTER)],
        held[padded(at + j + 2u * QUARTER)], held[padded(at + j + 3u * QUARTER)]);
}

fn pass_of_four(four: Four, j: u32, done: u32, step: u32) -> Four {
    let k = (j & (done - 1u)) * step;
    let b = complex_mul(factor(k), four.b);
    let c = complex_mul(factor(2u * k), four.c);
    let d = complex_mul(factor(3u * k), four.d);
    let even = four.a + c;
    let odd = four.a - c;
    let sum = b + d;
    let apart = select(vec2<f32>(b.y - d.y, d.x - b.x), vec2<f32>(d.y - b.y, b.x - d.x), INVERSE);
    return Four(even + sum, odd + apart, even - sum, odd - apart);
}

fn pass_of_two(four: Four, j: u32) -> Four {
    let c = complex_mul(factor(j), four.c);
    let d = complex_mul(factor(j + QUARTER), four.d);
    return Four(four.a + c, four.b + d, four.a - c, four.b - d);
}

fn passed(four: Four, j: u32, done: u32, step: u32) -> Four {
    if (4u * done > N) {
        return pass_of_two(four, j);
    }
    return pass_of_four(four, j, done, step);
}

fn put(at: u32, j: u32, done: u32, four: Four) {
    let l = j & (done - 1u);
    let first = at + 4u * (j - l) + l;
    held[padded(first)] = four.a;
    held[padded(first + done)] = four.b;
    held[padded(first + 2u * done)] = four.c;
    held[padded(first + 3u * done)] = four.d;
}

fn store_four(base: u32, j: u32, four: Four) {
    store_out(base + j, params.scale * four.a);
    store_out(base + j + QUARTER, params.scale * four.b);
    store_out(base + j + 2u * QUARTER, params.scale * four.c);
    store_out(base + j + 3u * QUARTER, params.scale * four.d);
}

fn keep_four(at: u32, j: u32, four: Four) {
    held[padded(at + j)] = four.a;
    held[padded(at + j + QUARTER)] = four.b;
    held[padded(at + j + 2u * QUARTER)] = four.c;
    held[padded(at + j + 3u * QUARTER)] = four.d;
}

// Elements k and N - k of a spectrum of real numbers, k up to N / 2; `half` is exp(-pi i / N).
fn store_pair(base: u32, at: u32, k: u32, half: vec2<f32>) {
    let a = 0.5 * held[padded(at + k)];
    let b = 0.5 * held[padded(at + (N - k) % N)];
    let even = vec2<f32>(a.x + b.x, a.y - b.y);
    let odd = vec2<f32>(a.y + b.y, b.x - a.x);
    var root = factor(k / 2u);
    if (k % 2u == 1u) {
        root = complex_mul(root, half);
    }
    let turned = complex_mul(root, odd);
    store_out(base + k, params.scale * (even + turned));
    let other = even - turned;
    store_out(base + N - k, params.scale * vec2<f32>(other.x, -other.y));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = (id.y * count.x + id.x) * ROWS;
    if (first >= params.rows) {
        return;
    }
    let row = first + lane / LANES;
    let base = min(row, params.rows - 1u) * N;
    let at = lane / LANES * N;
    let j = lane % LANES;
    var four_0 = first_four(base, j);
    var four_1 = Four();
    var four_2 = Four();
    var four_3 = Four();
    if (EACH > 1u) { four_1 = first_four(base, j + LANES); }
    if (EACH > 2u) {
        four_2 = first_four(base, j + 2u * LANES);
        four_3 = first_four(base, j + 3u * LANES);
    }
    for (var k = lane; k < QUARTER; k += WORKGROUP) {
        let root = unit_root(k, N, vec2<f32>(params.step_high, params.step_low));
        roots[root_place(k)] = select(root, vec2<f32>(root.x, -root.y), INVERSE);
    }
    workgroupBarrier();
    // subsequences of length `done`, a power of two, have been transformed; `step` is QUARTER / done
    var step = QUARTER;
    for (var done = 1u; done < N; done *= 4u) {
        if (done > 1u) {
            four_0 = take(at, j);
            if (EACH > 1u) { four_1 = take(at, j + LANES); }
            if (EACH > 2u) {
                four_2 = take(at, j + 2u * LANES);
                four_3 = take(at, j + 3u * LANES);
            }
        }
        four_0 = passed(four_0, j, done, step);
        if (EACH > 1u) { four_1 = passed(four_1, j + LANES, done, step); }
        if (EACH > 2u) {
            four_2 = passed(four_2, j + 2u * LANES, done, step);
            four_3 = passed(four_3, j + 3u * LANES, done, step);
        }
        if (4u * done < N) {
            workgroupBarrier();  // all have been taken
            put(at, j, done, four_0);
            if (EACH > 1u) { put(at, j + LANES, done, four_1); }
            if (EACH > 2u) {
                put(at, j + 2u * LANES, done, four_2);
                put(at, j + 3u * LANES, done, four_3);
            }
            workgroupBarrier();
        }
        step /= 4u;
    }
    if (REAL) {
        workgroupBarrier();  // all have been taken
        keep_four(at, j, four_0);
        if (EACH > 1u) { keep_four(at, j + LANES, four_1); }
        if (EACH > 2u) {
            keep_four(at, j + 2u * LANES, four_2);
            keep_four(at, j + 3u * LANES, four_3);
        }
        workgroupBarrier();
        if (row < params.rows) {
            let half = unit_root(1u, 2u * N, 0.5 * vec2<f32>(params.step_high, params.step_low));
            for (var k = j; k <= N / 2u; k += LANES) {
                store_pair(row * (N + 1u), at, k, half);
            }
        }
        return;
    }
    if (row >= params.rows) {
        return;
    }
    store_four(base, j, four_0);
    if (EACH > 1u) { store_four(base, j + LANES, four_1); }
    if (EACH > 2u) {
        store_four(base, j + 2u * LANES, four_2);
        store_four(base, j + 3u * LANES, four_3);
    }
}
