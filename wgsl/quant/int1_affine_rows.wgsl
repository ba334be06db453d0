// weight = d * q + m, q of 1 bit, floats d and m for a row
//
// uses  quant/affine_rows

const BITS = 1u;
