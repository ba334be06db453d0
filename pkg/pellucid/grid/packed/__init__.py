"""Storage in 21 kinds of numbers: packed bits, fake quantization, parameters with several versions."""
