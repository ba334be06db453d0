"""Spectra, and the parts of complex numbers."""

from __future__ import annotations

from .....op.public import EXPORTS
from .....tensors.tensor import Tensor
from ...onnx.operators.elementwise import ops
from ...rows import Ints
from ..table import operator, row

row("COMPLEX_ABS", ops.abs, 1)
row("REAL", ops.real, 1)
row("IMAG", ops.imag, 1)


@operator("RFFT2D")
def rfft2d(x: Tensor, lengths: Ints):
    return EXPORTS["fft"]["rfft2"](x, lengths)
