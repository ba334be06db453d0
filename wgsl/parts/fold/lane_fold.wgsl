// A lane's share of x[at + k * inner] for r + k < end: every LANES-th entry from r on, combined by
//   the kernel's `apply`, in eight sums each, so that eight loads are under way at once; none waits
//   for a branch of `apply`
//
// The kernel declares `alias T`, `fn identity`, `const LANES`, `fn apply`, `fn entry`, `fn load_x`,
// and `inner` in Params, the step from an entry to the next.
//
// turns  an eighth of (end - start) / LANES, and 8

fn lane_fold(first: u32, start: u32, end: u32) -> T {
    let step = LANES * params.inner;
    var r = first;
    var at = start;
    var a = identity();
    var b = identity();
    var c = identity();
    var d = identity();
    var e = identity();
    var f = identity();
    var g = identity();
    var h = identity();
    for (; r + 7u * LANES < end; r += 8u * LANES) {
        let a_next = entry(load_x(at));
        let b_next = entry(load_x(at + step));
        let c_next = entry(load_x(at + 2u * step));
        let d_next = entry(load_x(at + 3u * step));
        let e_next = entry(load_x(at + 4u * step));
        let f_next = entry(load_x(at + 5u * step));
        let g_next = entry(load_x(at + 6u * step));
        let h_next = entry(load_x(at + 7u * step));
        a = apply(a, a_next);
        b = apply(b, b_next);
        c = apply(c, c_next);
        d = apply(d, d_next);
        e = apply(e, e_next);
        f = apply(f, f_next);
        g = apply(g, g_next);
        h = apply(h, h_next);
        at += 8u * step;
    }
    // less than eight are left: none of these waits for another
    if (r + 3u * LANES < end) {
        a = apply(a, entry(load_x(at)));
        b = apply(b, entry(load_x(at + step)));
        c = apply(c, entry(load_x(at + 2u * step)));
        d = apply(d, entry(load_x(at + 3u * step)));
        r += 4u * LANES;
        at += 4u * step;
    }
    if (r < end) { e = apply(e, entry(load_x(at))); }
    if (r + LANES < end) { f = apply(f, entry(load_x(at + step))); }
    if (r + 2u * LANES < end) { g = apply(g, entry(load_x(at + 2u * step))); }
    let near = apply(apply(a, b), apply(c, d));
    let far = apply(apply(e, f), apply(g, h));
    return apply(near, far);
}
