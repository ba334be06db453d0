// weight = d * q + m, q of 1 bit, floats d and m for 32 columns
//
// uses  quant/affine

const BITS = 1u;
