// out[o, k] = scale * sum_j exp(-+2 pi i j k / N) * x[o, j]
//
// As fft/pass_4 with all passes in one dispatch, for rows of a power of two that workgroup memory
// holds: every element is read once and written once. The last pass is one of twos where N is no
// power of four. Where a lane makes 16 elements, two passes of fours follow each other in its registers.
// With REAL rows of 2 N real numbers are transformed as N complex ones, of which the first half of
// their spectrum is made: with z[k] = even[k] + i odd[k], out[k] = even[k] + exp(-pi i k / N) odd[k].
//
// x     (rows, N)   contiguous; with REAL (rows, 2 N)
// out   (rows, N)   with REAL (rows, N + 1)
// grid  one workgroup per ROWS rows; a lane makes EACH times four elements of a row
// turns 64
//
// uses  four, unit_root

alias T = vec2<f32>;
const N = 1024u;
const ROWS = 1u;
// 1 or 4
const EACH = 1u;
// With 4: what is left of N after passes of 16.
const LEFT = 1u;
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

// Both are padded, so that few neighbours meet in a bank, whatever power of two lies between them: half a
// warp reads 16 of them at a time.
var<workgroup> held: array<vec2<f32>, N * ROWS * 17u / 16u>;
// The first quarter of the N-th roots of 1.
var<workgroup> roots: array<vec2<f32>, QUARTER + QUARTER / 16u + QUARTER / 256u>;

// The k-th of the N-th roots of 1, of the first three quarters.
fn factor(k: u32) -> vec2<f32> {
    let root = roots[root_place(k % QUARTER)];
    let quarters = k / QUARTER;
    let turned = select(vec2<f32>(root.y, -root.x), vec2<f32>(-root.y, root.x), INVERSE);
    return select(select(root, turned, quarters == 1u), -root, quarters == 2u);
}

// Of elements a quarter of a row apart, or of transforms that are put together.
fn factors(k: u32) -> Four { return Four(vec2<f32>(1.0, 0.0), factor(k), factor(2u * k), factor(3u * k)); }

fn root_place(k: u32) -> u32 { return k + k / 16u + k / 256u; }

fn padded(i: u32) -> u32 { return i + i / 16u; }

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
    return four_transformed(four, factors((j & (done - 1u)) * step));
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

fn put(first: u32, step: u32, four: Four) {
    held[padded(first)] = four.a;
    held[padded(first + step)] = four.b;
    held[padded(first + 2u * step)] = four.c;
    held[padded(first + 3u * step)] = four.d;
}

// Elements of two transforms, the second multiplied: their sum and their difference.
fn pair(a: vec2<f32>, c: vec2<f32>, k: u32) -> vec4<f32> {
    let turned = complex_mul(factor(k), c);
    return vec4<f32>(a + turned, a - turned);
}

fn two_pairs(a: vec4<f32>, b: vec4<f32>) -> Four { return Four(a.xy, b.xy, a.zw, b.zw); }

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
    if (EACH > 1u) {
        four_1 = first_four(base, j + LANES);
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
    if (EACH == 1u) {
        for (var done = 1u; done < N; done *= 4u) {
            if (done > 1u) {
                four_0 = take(at, j);
            }
            four_0 = passed(four_0, j, done, step);
            if (4u * done < N) {
                let l = j & (done - 1u);
                workgroupBarrier();  // all have been taken
                put(at + 4u * (j - l) + l, done, four_0);
                workgroupBarrier();
            }
            step /= 4u;
        }
    } else {
        for (var done = 1u; 16u * done <= N; done *= 16u) {
            if (done > 1u) {
                four_0 = take(at, j);
                four_1 = take(at, j + LANES);
                four_2 = take(at, j + 2u * LANES);
                four_3 = take(at, j + 3u * LANES);
            }
            let l = j & (done - 1u);
            let near = factors(l * step);
            four_0 = four_transformed(four_0, near);
            four_1 = four_transformed(four_1, near);
            four_2 = four_transformed(four_2, near);
            four_3 = four_transformed(four_3, near);
            // the second pass of fours, of what the first one made
            let far = factors(l * (step / 4u));
            let a = Four(four_0.a, four_1.a, four_2.a, four_3.a);
            let b = Four(four_0.b, four_1.b, four_2.b, four_3.b);
            let c = Four(four_0.c, four_1.c, four_2.c, four_3.c);
            let d = Four(four_0.d, four_1.d, four_2.d, four_3.d);
            four_0 = four_transformed(a, far);
            four_1 = four_transformed(b, four_further(far, SIXTEENTH, TWO_SIXTEENTHS, THREE_SIXTEENTHS));
            four_2 = four_transformed(c, four_further(far, TWO_SIXTEENTHS, FOUR_SIXTEENTHS, SIX_SIXTEENTHS));
            four_3 = four_transformed(d,
                four_further(far, THREE_SIXTEENTHS, SIX_SIXTEENTHS, NINE_SIXTEENTHS));
            if (16u * done < N) {
                let first = at + 16u * (j - l) + l;
                workgroupBarrier();  // all have been taken
                put(first, 4u * done, four_0);
                put(first + done, 4u * done, four_1);
                put(first + 2u * done, 4u * done, four_2);
                put(first + 3u * done, 4u * done, four_3);
                workgroupBarrier();
            }
            step /= 16u;
        }
        if (LEFT > 1u) {
            four_0 = passed(take(at, j), j, N / LEFT, LEFT / 4u);
            four_1 = passed(take(at, j + LANES), j + LANES, N / LEFT, LEFT / 4u);
            four_2 = passed(take(at, j + 2u * LANES), j + 2u * LANES, N / LEFT, LEFT / 4u);
            four_3 = passed(take(at, j + 3u * LANES), j + 3u * LANES, N / LEFT, LEFT / 4u);
        }
        if (LEFT == 8u) {
            // the last pass of twos, of transforms of N / 2
            let next = j + LANES;
            let a = two_pairs(pair(four_0.a, four_2.a, j), pair(four_0.c, four_2.c, j + N / 4u));
            let b = two_pairs(pair(four_1.a, four_3.a, next), pair(four_1.c, four_3.c, next + N / 4u));
            let c = two_pairs(pair(four_0.b, four_2.b, j + N / 8u),
                pair(four_0.d, four_2.d, j + 3u * N / 8u));
            four_3 = two_pairs(pair(four_1.b, four_3.b, next + N / 8u),
                pair(four_1.d, four_3.d, next + 3u * N / 8u));
            four_0 = a;
            four_1 = b;
            four_2 = c;
        }
    }
    if (REAL) {
        workgroupBarrier();  // all have been taken
        keep_four(at, j, four_0);
        if (EACH > 1u) {
            keep_four(at, j + LANES, four_1);
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
    if (EACH > 1u) {
        store_four(base, j + LANES, four_1);
        store_four(base, j + 2u * LANES, four_2);
        store_four(base, j + 3u * LANES, four_3);
    }
}
