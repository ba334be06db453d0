// extremum_entry(base, r)  entry r of the line of x that begins at `base`, with a key: the first
//                          one of the line in their order is its extremum
//
// extremum_of(base, first, end, step)
//                          the extremum of every step-th entry from `first` on, those before `end`
//
// The kernel declares `fn load_x`, `fn apply`, which turns a value into bits, `inner` in Params,
// the distance of neighbouring entries, and what the part `order` needs.
//
// turns  an eighth of (end - first) / step, and 2
// uses  order

fn extremum_entry(base: u32, r: u32) -> Found {
    let key = order_key(apply(load_x(base + r * params.inner)));
    // with NaN as the largest value, the smallest is looked for from the other end
    if (FLOAT && !DESCENDING && key.x == 0xffffffffu) {
        return Found(vec2<u32>(0u, 0u), r);
    }
    return Found(key, r);
}

// Of two entries, of which `b` comes later.
fn extremum_earlier(a: Found, b: Found) -> Found {
    let is_b = (b.key.x < a.key.x) | ((b.key.x == a.key.x) & (b.key.y < a.key.y));
    return Found(select(a.key, b.key, is_b), select(a.place, b.place, is_b));
}

fn extremum_of(base: u32, first: u32, end: u32, step: u32) -> Found {
    if (first >= end) {
        return found_nothing();
    }
    var found = extremum_entry(base, first);
    let last = end - 1u;
    // Eight loads are under way at once; past the end the last entry comes again.
    for (var r = first; r < end; r += 8u * step) {
        let a = extremum_entry(base, r);
        let b = extremum_entry(base, min(r + step, last));
        let c = extremum_entry(base, min(r + 2u * step, last));
        let d = extremum_entry(base, min(r + 3u * step, last));
        let e = extremum_entry(base, min(r + 4u * step, last));
        let f = extremum_entry(base, min(r + 5u * step, last));
        let g = extremum_entry(base, min(r + 6u * step, last));
        let h = extremum_entry(base, min(r + 7u * step, last));
        let near = extremum_earlier(extremum_earlier(a, b), extremum_earlier(c, d));
        let far = extremum_earlier(extremum_earlier(e, f), extremum_earlier(g, h));
        found = extremum_earlier(found, extremum_earlier(near, far));
    }
    return found;
}
