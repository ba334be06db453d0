// WIDTH neighbours in `inner` and several lanes for each, WIDTH apart, which take turns over r.
//
// strip_share(base, first, end)  a lane's share of x[base + r * inner] for r from `first`, before
//                                `end`: every STRIPS-th, in four sums each, so that four loads are
//                                under way at once
// strip_fold(lane, value)        the values of the lanes that share an output combined, known to
//                                the first WIDTH lanes. Every lane must call it, in uniform control
//                                flow.
//
// The kernel declares `alias T`, `fn identity`, `const WORKGROUP`, `const WIDTH`, `fn apply`,
// `fn entry`, `fn load_x`, and `inner` in Params.
//
// turns  (end - start) / STRIPS, and STRIPS

const STRIPS = WORKGROUP / WIDTH;

var<workgroup> strips: array<T, WORKGROUP>;

fn strip_share(base: u32, first: u32, end: u32) -> T {
    var a = identity();
    var b = identity();
    var c = identity();
    var d = identity();
    var r = first;
    for (; r + 3u * STRIPS < end; r += 4u * STRIPS) {
        let a_next = entry(load_x(base + r * params.inner));
        let b_next = entry(load_x(base + (r + STRIPS) * params.inner));
        let c_next = entry(load_x(base + (r + 2u * STRIPS) * params.inner));
        let d_next = entry(load_x(base + (r + 3u * STRIPS) * params.inner));
        a = apply(a, a_next);
        b = apply(b, b_next);
        c = apply(c, c_next);
        d = apply(d, d_next);
    }
    for (; r < end; r += STRIPS) {
        a = apply(a, entry(load_x(base + r * params.inner)));
    }
    return apply(apply(a, b), apply(c, d));
}

fn strip_fold(lane: u32, value: T) -> T {
    var own = value;
    strips[lane] = own;
    workgroupBarrier();
    for (var half = WORKGROUP / 2u; half >= WIDTH; half /= 2u) {
        if (lane < half) {
            own = apply(own, strips[lane + half]);
            strips[lane] = own;
        }
        workgroupBarrier();
    }
    return own;
}
