// extremum_entry(base, r)  entry r of the line of x that begins at `base`, with a key: the first
//                          one of the line in their order is its extremum
//
// The kernel declares `fn load_x`, `fn apply`, which turns a value into bits, `inner` in Params,
// the step from an entry to the next, and what the part `order` needs.
//
// uses  order

fn extremum_entry(base: u32, r: u32) -> Found {
    let key = order_key(apply(load_x(base + r * params.inner)));
    // with NaN as the largest value, the smallest is looked for from the other end
    if (FLOAT && !DESCENDING && key.x == 0xffffffffu) {
        return Found(vec2<u32>(0u, 0u), r);
    }
    return Found(key, r);
}
