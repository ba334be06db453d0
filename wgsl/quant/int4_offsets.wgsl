// weight = d * (q - 8) + m, q of 4 bits, floats d and m for 32 columns
//
// source  torchao's Int4Tensor, whose numbers of 4 bits are signed
// uses    quant/affine4

const ZERO = 8.0;
