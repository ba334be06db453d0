// weight = d * q + m, q of 4 bits, floats d and m for 32 columns
//
// source  transformers, integrations/metal_quantization.py
// uses    quant/affine4

const ZERO = 0.0;
