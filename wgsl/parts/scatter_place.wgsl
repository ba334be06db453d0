// Where source k of a scatter goes: (o * limit + index[o, s, i]) * inner + i
//
// A bad index is reported, and goes nowhere: to the largest u32.
//
// expects  op, limit, sources and inner in Params
// uses     status

fn scatter_place(k: u32, index: vec2<u32>) -> u32 {
    if (index.y != 0u || index.x >= params.limit) {
        report_index(params.op, index, params.limit);
        return 0xffffffffu;
    }
    // divisions take longer than all else
    let line = params.sources * params.inner;
    var outer = 0u;
    if (k >= line) { outer = k / line; }
    var inner = 0u;
    if (params.inner > 1u) { inner = k % params.inner; }
    return (outer * params.limit + index.x) * params.inner + inner;
}
