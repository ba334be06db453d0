// Position of element i of a row-major shape in a strided tensor. Unused leading axes have length 1; strides wrap as two's complement.

fn strided4(i: u32, shape: vec4<u32>, strides: vec4<u32>) -> u32 {
    var rest = i;
    var at = (rest % shape.w) * strides.w;
    rest /= shape.w;
    at += (rest % shape.z) * strides.z;
    rest /= shape.z;
    at += (rest % shape.y) * strides.y;
    rest /= shape.y;
    return at + rest * strides.x;
}

fn strided8(i: u32, shape0: vec4<u32>, shape1: vec4<u32>, strides0: vec4<u32>, strides1: vec4<u32>) -> u32 {
    let inner = shape1.x * shape1.y * shape1.z * shape1.w;
    return strided4(i % inner, shape1, strides1) + strided4(i / inner, shape0, strides0);
}
