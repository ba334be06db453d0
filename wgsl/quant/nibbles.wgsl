// What formats of E2M1 share whose numbers of 4 bits lie one behind another
//
// nibbles  the four of the low half of a word as bytes
// E2M1     twice the numbers, for quant/levels: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives

const E2M1 = vec4<u32>(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);

fn nibbles(half: u32) -> u32 {
    let pairs = ((half & 0xffffu) | (half << 8u)) & 0x00ff00ffu;
    return (pairs | (pairs << 4u)) & 0x0f0f0f0fu;
}
