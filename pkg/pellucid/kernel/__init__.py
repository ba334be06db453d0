"""Kernels: WGSL sources and their holes, variants by device, turns of loops, autotuning."""
