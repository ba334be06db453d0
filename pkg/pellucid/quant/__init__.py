"""Quantized weights: formats, their planes, and the numpy twins of the kernels in ``wgsl/quant``."""

from . import formats
from .encoding import ENCODERS, encode_blocks
from .format import BLOCK_FORMATS, FORMATS, ROW, UNIT, BlockFormat, Layout, Plane, QuantFormat
from .planes import dequantize_planes, repack_blocks
from .stored import Expected, Stored
