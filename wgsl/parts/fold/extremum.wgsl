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

fn extremum_entry(base: u32, r: u32) -> Found { return extremum_at(base + r * params.inner, r); }

fn extremum_at(at: u32, r: u32) -> Found {
    let key = order_key(apply(load_x(at)));
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

// The first of eight, at `at` and from there on; past `last` that one comes again.
fn extremum_of_eight(at: u32, r: u32, step: u32, last: u32) -> Found {
    let near = r + vec4<u32>(0u, 1u, 2u, 3u) * step;
    let far = near + 4u * step;
    var near_at = at + vec4<u32>(0u, 1u, 2u, 3u) * (step * params.inner);
    var far_at = near_at + 4u * (step * params.inner);
    var near_place = near;
    var far_place = far;
    if (far.w > last) {
        near_place = min(near, vec4<u32>(last));
        far_place = min(far, vec4<u32>(last));
        near_at = at + (near_place - r) * params.inner;
        far_at = at + (far_place - r) * params.inner;
    }
    let a = extremum_at(near_at.x, near_place.x);
    let b = extremum_at(near_at.y, near_place.y);
    let c = extremum_at(near_at.z, near_place.z);
    let d = extremum_at(near_at.w, near_place.w);
    let e = extremum_at(far_at.x, far_place.x);
    let f = extremum_at(far_at.y, far_place.y);
    let g = extremum_at(far_at.z, far_place.z);
    let h = extremum_at(far_at.w, far_place.w);
    return extremum_earlier(extremum_earlier(extremum_earlier(a, b), extremum_earlier(c, d)),
        extremum_earlier(extremum_earlier(e, f), extremum_earlier(g, h)));
}

fn extremum_of(base: u32, first: u32, end: u32, step: u32) -> Found {
    if (first >= end) {
        return found_nothing();
    }
    var at = base + first * params.inner;
    var found = extremum_at(at, first);
    // Eight loads are under way at once.
    for (var r = first; r < end; r += 8u * step) {
        found = extremum_earlier(found, extremum_of_eight(at, r, step, end - 1u));
        at += 8u * step * params.inner;
    }
    return found;
}
