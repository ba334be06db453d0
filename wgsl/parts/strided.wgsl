// Position of element i of a row-major shape in a strided tensor. Unused leading axes have length 1; strides wrap as two's complement.
//
// A division takes a GPU longer than all else here. Lengths are the same for all invocations, so
// branches on them cost little: powers of two need none, and two axes need one of three.

fn strided_over(i: u32, length: u32) -> u32 {
    if ((length & (length - 1u)) == 0u) { return i >> firstTrailingBit(length); }
    return i / length;
}

fn strided4(i: u32, shape: vec4<u32>, strides: vec4<u32>) -> u32 {
    let over_w = strided_over(i, shape.w);
    let at_w = (i - over_w * shape.w) * strides.w;
    if ((shape.x | shape.y) == 1u) { return at_w + over_w * strides.z; }
    let over_z = strided_over(over_w, shape.z);
    let over_y = strided_over(over_z, shape.y);
    return at_w + (over_w - over_z * shape.z) * strides.z + (over_z - over_y * shape.y) * strides.y
        + over_y * strides.x;
}

fn strided8(i: u32, shape0: vec4<u32>, shape1: vec4<u32>, strides0: vec4<u32>, strides1: vec4<u32>) -> u32 {
    let inner = shape1.x * shape1.y * shape1.z * shape1.w;
    return strided4(i % inner, shape1, strides1) + strided4(i / inner, shape0, strides0);
}
