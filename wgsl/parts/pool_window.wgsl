// The windows of a pooling along one axis, and the windows that hold a place.
//
// Window q of a plain pooling begins at q * stride - padding and is `kernel` long. With `const
// ADAPTIVE` it holds the places from floor(q * length / windows) to ceil((q + 1) * length /
// windows). With `const COUNT_PADDING` places of the padding count. The kernel declares both.

// first, end: the places inside of the image; count: what a mean is divided by.
struct PoolWindow {
    first: u32,
    end: u32,
    count: u32,
}

// floor(k * a / b) and ceil(k * a / b), without the product of large lengths
fn floor_ratio(k: u32, a: u32, b: u32) -> u32 { return k * (a / b) + k * (a % b) / b; }
fn ceil_ratio(k: u32, a: u32, b: u32) -> u32 { return k * (a / b) + (k * (a % b) + b - 1u) / b; }

// settings: kernel, stride, padding.
fn pool_window(q: u32, settings: vec4<u32>, length: u32, windows: u32) -> PoolWindow {
    if (ADAPTIVE) {
        let first = floor_ratio(q, length, windows);
        let end = ceil_ratio(q + 1u, length, windows);
        return PoolWindow(first, end, end - first);
    }
    let padding = settings.z;
    // from where the padding begins
    let begin = q * settings.y;
    let last = min(begin + settings.x, length + 2u * padding);
    let first = max(begin, padding) - padding;
    let end = min(max(last, padding) - padding, length);
    return PoolWindow(first, end, select(end - first, last - begin, COUNT_PADDING));
}

// The first window that holds a place, and the one behind the last.
fn windows_with(place: u32, settings: vec4<u32>, length: u32, windows: u32) -> vec2<u32> {
    if (ADAPTIVE) {
        return vec2<u32>(floor_ratio(place, windows, length),
            ceil_ratio(place + 1u, windows, length));
    }
    let at = place + settings.z;
    let first = select(0u, (at - settings.x) / settings.y + 1u, at >= settings.x);
    return vec2<u32>(first, min(at / settings.y + 1u, windows));
}

// Where tap 0 of a window of maxima lies (modulo 2^32: before the edge it is a large number), and the
// place behind those that it may hold. settings: kernel, stride, padding, dilation.
fn window_reach(q: u32, settings: vec4<u32>, length: u32, windows: u32) -> vec2<u32> {
    if (ADAPTIVE) {
        return vec2<u32>(floor_ratio(q, length, windows), ceil_ratio(q + 1u, length, windows));
    }
    return vec2<u32>(q * settings.y - settings.z, length);
}

// The window of which a place is this tap; `windows` or more where there is none. Of windows that adapt
// the tap says which one of those that hold the place.
fn window_of_tap(place: u32, tap: u32, settings: vec4<u32>, length: u32, windows: u32) -> u32 {
    if (ADAPTIVE) {
        let range = windows_with(place, settings, length, windows);
        return select(windows, range.x + tap, range.x + tap < range.y);
    }
    // modulo 2^32, as above
    let at = place + settings.z - tap * settings.w;
    return select(windows, at / settings.y, at % settings.y == 0u);
}
