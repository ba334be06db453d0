// weight = d * q + m, q of 8 bits, floats d and m for 32 columns
//
// uses  quant/affine

const BITS = 8u;
