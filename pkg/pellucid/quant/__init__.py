"""Quantized weights: formats, their planes, and the numpy twins of the kernels in ``wgsl/quant``."""

from .format import ROW, UNIT, BlockFormat, Layout, Plane, QuantFormat
from .formats import FORMATS
from .planes import dequantize_planes, repack_blocks
from .stored import Expected, Stored
