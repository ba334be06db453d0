"""Autotuning: candidate kernels of a product or convolution, measured times, the choice."""
