// weight = d * q + m, q of 2 bits, floats d and m for a row
//
// uses  quant/affine_rows

const BITS = 2u;
