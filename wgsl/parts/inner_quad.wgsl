// Four elements of an axis that lie `inner` apart; past `end` the last one comes again, so that no
//   load waits for a branch.
//
// The kernel declares `fn load_x(i: u32) -> f32` and a field `inner` in Params.

fn inner_quad(base: u32, columns: vec4<u32>, end: u32) -> vec4<f32> {
    let at = base + min(columns, vec4<u32>(end - 1u)) * params.inner;
    return vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
}
