// weight = d * q + m, q of 4 bits, floats d and m for a row
//
// uses  quant/affine_rows

const BITS = 4u;
