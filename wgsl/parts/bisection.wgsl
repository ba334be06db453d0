// Where a key would be inserted into a sorted row, by the steps of PyTorch's bisection, which passes a NaN.
//
// expects  load_rows, apply (a value as bits, high word first), what parts/order expects, and
//          const RIGHT: behind equal values, or else before them
// turns    33

fn is_before(found: vec2<u32>, key: vec2<u32>) -> bool {
    if (FLOAT && found.x == 0xffffffffu) {
        return true;
    }
    if (found.x != key.x) {
        return found.x < key.x;
    }
    return found.y < key.y || (RIGHT && found.y == key.y);
}

// The row is `columns` long and begins at `base`.
fn bisected(key: vec2<u32>, base: u32, columns: u32) -> u32 {
    var low = 0u;
    var high = columns;
    while (low < high) {
        let middle = (low + high) / 2u;
        if (is_before(order_key(apply(load_rows(base + middle))), key)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}
