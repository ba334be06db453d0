// The places of an axis that a place of its resampled form takes in, and their weights.
//
// Place q of the result lies at q * scale of the axis, or with HALF, where places are the middles of
// cells, at (q + 0.5) * scale - 0.5. A filter of width WIDTH / 2 to both sides weights what is around; with
// ANTIALIAS it is as wide as a place of the result, and its weights are divided by their sum. WIDTH
// of 1: the place below alone.
//
// expects  const WIDTH: 1, 2 (linear) or 4 (cubic). HALF, ANTIALIAS
// turns    of resample_taps at most the taps

struct ResampleTaps {
    first: i32,
    count: i32,
    // of tap 0 the distance from the middle of the filter, and that from one tap to the next
    start: f32,
    step: f32,
    total: f32,
}

// The part of the filter's shape that says how sharp it is.
const SHARPNESS = select(-0.75, -0.5, ANTIALIAS);

fn resample_filter(at: f32) -> f32 {
    let x = abs(at);
    if (WIDTH == 1) {
        return 1.0;
    }
    if (WIDTH == 2) {
        return max(1.0 - x, 0.0);
    }
    if (x < 1.0) {
        return ((SHARPNESS + 2.0) * x - (SHARPNESS + 3.0)) * x * x + 1.0;
    }
    return select(0.0, (((x - 5.0) * x + 8.0) * x - 4.0) * SHARPNESS, x < 2.0);
}

// Of an axis of this length.
fn resample_taps(q: u32, length: u32, scale: f32) -> ResampleTaps {
    let last = i32(length) - 1;
    if (ANTIALIAS) {
        let wide = max(scale, 1.0);
        let middle = scale * (f32(q) + 0.5);
        let reach = 0.5 * f32(WIDTH) * wide;
        let first = max(i32(middle - reach + 0.5), 0);
        let count = max(min(i32(middle + reach + 0.5), last + 1) - first, 0);
        var taps = ResampleTaps(first, count, (f32(first) - middle + 0.5) / wide, 1.0 / wide, 0.0);
        for (var k = 0; k < count; k++) {
            taps.total += resample_filter(taps.start + f32(k) * taps.step);
        }
        return taps;
    }
    if (WIDTH == 1) {
        let at = select(f32(q), f32(q) + 0.5, HALF) * scale;
        return ResampleTaps(min(i32(at), last), 1, 0.0, 0.0, 1.0);
    }
    var at = f32(q) * scale;
    if (HALF) {
        at = (f32(q) + 0.5) * scale - 0.5;
    }
    if (WIDTH == 2) {
        at = max(at, 0.0);
    }
    let below = min(i32(floor(at)), last);
    let start = -clamp(at - f32(below), 0.0, 1.0) - f32(WIDTH / 2 - 1);
    return ResampleTaps(below - (WIDTH / 2 - 1), WIDTH, start, 1.0, 1.0);
}

// The weight of tap k.
fn resample_weight(taps: ResampleTaps, k: i32) -> f32 {
    return resample_filter(taps.start + f32(k) * taps.step) / taps.total;
}
