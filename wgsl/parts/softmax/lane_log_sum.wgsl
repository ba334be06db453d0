// lane_log_sum(first, step, count)   the largest of x[first + k * step] for k < count, and the sum of
//   their exponentials beside it, as wgsl/parts/number/hyperbolic.wgsl has such pairs
//
// Eight loads are under way at once, and an element costs one exponential: numbers are compared
// before any is made.
//
// The kernel declares `fn load_x(i: u32) -> f32`.
//
// turns  an eighth of count, and 1

// Four entries; past `count` they are -inf, of which nothing comes.
fn log_sum_quad(first: u32, step: u32, k: u32, count: u32) -> vec4<f32> {
    let near = k + vec4<u32>(0u, 1u, 2u, 3u);
    let places = first + min(near, vec4<u32>(count - 1u)) * step;
    let four = vec4<f32>(load_x(places.x), load_x(places.y), load_x(places.z), load_x(places.w));
    return select(vec4<f32>(infinity(-1.0)), four, near < vec4<u32>(count));
}

fn log_sum_of_four(values: vec4<f32>) -> vec2<f32> {
    return log_sum_pair(log_sum_pair(vec2<f32>(values.x, 1.0), vec2<f32>(values.y, 1.0)),
        log_sum_pair(vec2<f32>(values.z, 1.0), vec2<f32>(values.w, 1.0)));
}

fn lane_log_sum(first: u32, step: u32, count: u32) -> vec2<f32> {
    var largest = -3.4028234e38;
    var total = 0.0;
    var others = vec2<f32>(infinity(-1.0), 0.0);
    for (var k = 0u; k < count; k += 8u) {
        let near = log_sum_quad(first, step, k, count);
        let far = log_sum_quad(first, step, k + 4u, count);
        let bits = max(bitcast<vec4<u32>>(near) & vec4<u32>(0x7fffffffu),
            bitcast<vec4<u32>>(far) & vec4<u32>(0x7fffffffu));
        // What has a NaN or an infinity is rare, and goes by itself.
        if (max(max(bits.x, bits.y), max(bits.z, bits.w)) >= 0x7f800000u) {
            others = log_sum_pair(others, log_sum_pair(log_sum_of_four(near), log_sum_of_four(far)));
        } else {
            let high = max(near, far);
            let peak = max(largest, max(max(high.x, high.y), max(high.z, high.w)));
            let shares = exp(max(near - peak, vec4<f32>(-104.0))) + exp(max(far - peak, vec4<f32>(-104.0)));
            total = total * exp(max(largest - peak, -104.0))
                + ((shares.x + shares.y) + (shares.z + shares.w));
            largest = peak;
        }
    }
    // where no number was there the largest is none
    return log_sum_pair(others, vec2<f32>(select(largest, infinity(-1.0), total == 0.0), total));
}
