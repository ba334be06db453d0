"""ONNX: files as modules. ``pellucid.onnx.load(source)``."""

from . import (
    attention,
    contributed,
    contributed_quantized,
    elementwise,
    images,
    indices,
    norms,
    products,
    quantized,
    recurrent,
    reductions,
    shapes,
    signal,
    windows,
)
from .load import load, load_async
from .model import OnnxModel
from .table import TABLE, operator

__all__ = ["TABLE", "OnnxModel", "load", "load_async", "operator"]
