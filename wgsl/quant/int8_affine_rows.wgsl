// weight = d * q + m, q of 8 bits, floats d and m for a row
//
// uses  quant/affine_rows

const BITS = 8u;
