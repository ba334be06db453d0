// lane_product(first, step, count, fused)   the product of x[first + k * step] for k < count;
//   `fused` as wgsl/parts/product/factored.wgsl has it
//
// 16 loads are under way at once, while the 16 before them are multiplied.
//
// The kernel declares `fn load_x(i: u32) -> f32`.
//
// turns  an eighth of count, and 2
// uses   factored

struct Sixteen {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn lane_quad(at: u32, step: u32) -> vec4<f32> {
    return vec4<f32>(load_x(at), load_x(at + step), load_x(at + 2u * step), load_x(at + 3u * step));
}

// The same before `left`, and 1 from there on.
fn last_quad(at: u32, step: u32, first: u32, left: u32) -> vec4<f32> {
    let k = first + vec4<u32>(0u, 1u, 2u, 3u);
    let places = at + min(k, vec4<u32>(left - 1u)) * step;
    let four = vec4<f32>(load_x(places.x), load_x(places.y), load_x(places.z), load_x(places.w));
    return select(vec4<f32>(1.0), four, k < vec4<u32>(left));
}

fn lane_sixteen(at: u32, step: u32, left: u32) -> Sixteen {
    if (left >= 16u) {
        return Sixteen(lane_quad(at, step), lane_quad(at + 4u * step, step), lane_quad(at + 8u * step, step),
            lane_quad(at + 12u * step, step));
    }
    return Sixteen(last_quad(at, step, 0u, left), last_quad(at, step, 4u, left),
        last_quad(at, step, 8u, left), last_quad(at, step, 12u, left));
}

fn lane_product(first: u32, step: u32, count: u32, fused: bool) -> vec2<u32> {
    var running = OneFactored(1.0, 0.0, 0);
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
        let near = factored_times(factors_of(now.a), factors_of(now.b), fused);
        let far = factored_times(factors_of(now.c), factors_of(now.d), fused);
        let whole = factored_whole(factored_times(near, far, fused), fused);
        running = one_normal(one_times(running, whole, fused));
    }
    return product_of_one(running);
}
