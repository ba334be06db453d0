"""ONNX: files as modules. ``pellucid.onnx.load(source)``."""

from . import operators
from .load import load, load_async
from .model import OnnxModel
from .table import TABLE, operator

__all__ = ["TABLE", "OnnxModel", "load", "load_async", "operator"]
