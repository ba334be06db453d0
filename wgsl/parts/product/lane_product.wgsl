// lane_product(first, step, count, none)   the product of x[first + k * step] for k < count, `none`
//   being 0 as wgsl/parts/product/product_pair.wgsl has it
//
// 16 loads are under way at once, while the 16 before them are multiplied. Where one of these is no
// normal number, they are multiplied one by one.
//
// The kernel declares `fn load_x(i: u32) -> f32`.
//
// turns  count, in the worst case
// uses   product, product_pair

fn lane_quad(at: u32, step: u32) -> vec4<u32> {
    return bitcast<vec4<u32>>(
        vec4<f32>(load_x(at), load_x(at + step), load_x(at + 2u * step), load_x(at + 3u * step)));
}

fn lane_product(first: u32, step: u32, count: u32, none: u32) -> vec2<u32> {
    var running = PRODUCT_ONE;
    var at = first;
    var left = count;
    var a_next = vec4<u32>();
    var b_next = vec4<u32>();
    var c_next = vec4<u32>();
    var d_next = vec4<u32>();
    if (left >= 16u) {
        a_next = lane_quad(at, step);
        b_next = lane_quad(at + 4u * step, step);
        c_next = lane_quad(at + 8u * step, step);
        d_next = lane_quad(at + 12u * step, step);
    }
    for (; left >= 16u; left -= 16u) {
        let a = a_next;
        let b = b_next;
        let c = c_next;
        let d = d_next;
        at += 16u * step;
        if (left >= 32u) {
            a_next = lane_quad(at, step);
            b_next = lane_quad(at + 4u * step, step);
            c_next = lane_quad(at + 8u * step, step);
            d_next = lane_quad(at + 12u * step, step);
        }
        if (quad_is_normal(a) && quad_is_normal(b) && quad_is_normal(c) && quad_is_normal(d)) {
            var pair = pair_times_quad(pair_one(), a, none);
            pair = pair_times_quad(pair, b, none);
            pair = pair_times_quad(pair, c, none);
            pair = pair_times_quad(pair, d, none);
            running = product_times(running, pair_product(pair));
        } else {
            // In a loop, for as a text of its own each of them takes a compiler long.
            for (var back = 16u; back > 0u; back--) {
                running = product_times(running, product_of(load_x(at - back * step)));
            }
        }
    }
    for (; left > 0u; left--) {
        running = product_times(running, product_of(load_x(at)));
        at += step;
    }
    return running;
}
