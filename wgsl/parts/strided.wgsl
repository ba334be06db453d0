// Position of element i of a row-major shape in a strided tensor. Unused leading axes have length 1; strides wrap as two's complement.
//
// Division takes a GPU longer than all else here. Where a length divides by itself it comes as a factor and a
// shift: of i below 2^31 the high half of 2 * i * factor, shifted, is i / length.

fn strided_over(i: u32, factor: u32, shift: u32) -> u32 {
    let a = 2u * i;
    let low = (a & 0xffffu) * (factor & 0xffffu);
    let left = (a >> 16u) * (factor & 0xffffu) + (low >> 16u);
    let right = (a & 0xffffu) * (factor >> 16u) + (left & 0xffffu);
    return ((a >> 16u) * (factor >> 16u) + (left >> 16u) + (right >> 16u)) >> shift;
}

fn strided_within(i: u32, length: u32, factor: u32, shift: u32) -> u32 {
    return i - strided_over(i, factor, shift) * length;
}

// Of axes that are (length, factor, shift), and of the strides of four.
fn strided_2(i: u32, last: vec4<u32>, strides: vec4<u32>) -> u32 {
    let rest = strided_over(i, last.y, last.z);
    return (i - rest * last.x) * strides.w + rest * strides.z;
}

fn strided_3(i: u32, third: vec4<u32>, last: vec4<u32>, strides: vec4<u32>) -> u32 {
    let rest = strided_over(i, last.y, last.z);
    let above = strided_over(rest, third.y, third.z);
    return (i - rest * last.x) * strides.w + (rest - above * third.x) * strides.z + above * strides.y;
}

fn strided_4(i: u32, second: vec4<u32>, third: vec4<u32>, last: vec4<u32>, strides: vec4<u32>) -> u32 {
    let rest = strided_over(i, last.y, last.z);
    return (i - rest * last.x) * strides.w + strided_3(rest, second, third, strides.xxyz);
}

// Of five and six axes, with the strides of eight.
fn strided_5(
    i: u32, first: vec4<u32>, second: vec4<u32>, third: vec4<u32>, last: vec4<u32>, above: vec4<u32>,
    strides: vec4<u32>,
) -> u32 {
    let rest = strided_over(i, last.y, last.z);
    return (i - rest * last.x) * strides.w
        + strided_4(rest, first, second, third, vec4<u32>(above.w, strides.xyz));
}

fn strided_6(
    i: u32, zeroth: vec4<u32>, first: vec4<u32>, second: vec4<u32>, third: vec4<u32>, last: vec4<u32>,
    above: vec4<u32>, strides: vec4<u32>,
) -> u32 {
    let rest = strided_over(i, last.y, last.z);
    return (i - rest * last.x) * strides.w
        + strided_5(rest, zeroth, first, second, third, above.xxyz, vec4<u32>(above.w, strides.xyz));
}

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
