"""Quantized weights: formats, their planes, and the numpy twins of the kernels in ``wgsl/quant``."""

from .formats import FORMATS, Layout, Plane, QuantFormat
from .planes import dequantize_planes, repack_blocks

__all__ = ["FORMATS", "Layout", "Plane", "QuantFormat", "dequantize_planes", "repack_blocks"]
