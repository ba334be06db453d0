// extremum_entry(base, r)  entry r of the line of x that begins at `base`, with a key: the first
//                          one of the line in their order is its extremum
//
// extremum_of(base, first, end, step)
//                          the extremum of every step-th entry from `first` on, those before `end`
//
// The kernel declares `fn load_x`, `fn apply`, which turns a value into bits, `inner` in Params,
// the distance of neighbouring entries, and what the part `order` needs.
//
// turns  a quarter of (end - first) / step
// uses  order

fn extremum_entry(base: u32, r: u32) -> Found {
    let key = order_key(apply(load_x(base + r * params.inner)));
    // with NaN as the largest value, the smallest is looked for from the other end
    if (FLOAT && !DESCENDING && key.x == 0xffffffffu) {
        return Found(vec2<u32>(0u, 0u), r);
    }
    return Found(key, r);
}

fn extremum_of(base: u32, first: u32, end: u32, step: u32) -> Found {
    var found = found_nothing();
    // four loads are under way at once; past the end the last entry comes again
    for (var r = first; r < end; r += 4u * step) {
        let a = extremum_entry(base, r);
        let b = extremum_entry(base, min(r + step, end - 1u));
        let c = extremum_entry(base, min(r + 2u * step, end - 1u));
        let d = extremum_entry(base, min(r + 3u * step, end - 1u));
        found = found_first(found, found_first(found_first(a, b), found_first(c, d)));
    }
    return found;
}
