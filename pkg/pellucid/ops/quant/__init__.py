"""Products with quantized weights, dequantization."""
