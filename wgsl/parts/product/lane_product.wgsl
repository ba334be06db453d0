// lane_product(first, step, count, none)   the product of x[first + k * step] for k < count, `none`
//   being 0 as wgsl/parts/product/product_pair.wgsl has it
//
// 16 loads are under way at once, while the 16 before them are multiplied. Where one of these is far from
// 1, or no number, they are multiplied one by one.
//
// The kernel declares `fn load_x(i: u32) -> f32`.
//
// turns  count, in the worst case
// uses   product, product_pair

fn lane_quad(at: u32, step: u32) -> vec4<u32> {
    return bitcast<vec4<u32>>(
        vec4<f32>(load_x(at), load_x(at + step), load_x(at + 2u * step), load_x(at + 3u * step)));
}

// The same before `left`, and 1 from there on.
fn last_quad(at: u32, step: u32, first: u32, left: u32) -> vec4<u32> {
    let k = first + vec4<u32>(0u, 1u, 2u, 3u);
    let places = at + min(k, vec4<u32>(left - 1u)) * step;
    let four = vec4<f32>(load_x(places.x), load_x(places.y), load_x(places.z), load_x(places.w));
    return bitcast<vec4<u32>>(select(vec4<f32>(1.0), four, k < vec4<u32>(left)));
}

struct Sixteen {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
}

fn lane_sixteen(at: u32, step: u32, left: u32) -> Sixteen {
    if (left >= 16u) {
        return Sixteen(lane_quad(at, step), lane_quad(at + 4u * step, step), lane_quad(at + 8u * step, step),
            lane_quad(at + 12u * step, step));
    }
    return Sixteen(last_quad(at, step, 0u, left), last_quad(at, step, 4u, left),
        last_quad(at, step, 8u, left), last_quad(at, step, 12u, left));
}

fn lane_product(first: u32, step: u32, count: u32, none: u32) -> vec2<u32> {
    var running = PRODUCT_ONE;
    var at = first;
    var left = count;
    var next = Sixteen();
    if (left > 0u) {
        next = lane_sixteen(at, step, left);
    }
    while (left > 0u) {
        let now = next;
        let taken = min(left, 16u);
        left -= taken;
        at += taken * step;
        if (left > 0u) {
            next = lane_sixteen(at, step, left);
        }
        if (quad_is_near(now.a) && quad_is_near(now.b) && quad_is_near(now.c) && quad_is_near(now.d)) {
            let near = pair_times_pair(quad_product(now.a, none), quad_product(now.b, none), none);
            let far = pair_times_pair(quad_product(now.c, none), quad_product(now.d, none), none);
            running = product_times(running, pair_product(pair_times_pair(near, far, none)));
        } else {
            // In a loop, for as a text of its own each of them takes a compiler long.
            for (var back = taken; back > 0u; back--) {
                running = product_times(running, product_of(load_x(at - back * step)));
            }
        }
    }
    return running;
}
