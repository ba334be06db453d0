"""TensorFlow Lite: files as modules. ``pellucid.tflite.load(source)``."""

from . import operators
from .load import load, load_async
from .model import TfliteModel
from .table import TABLE, operator

__all__ = ["TABLE", "TfliteModel", "load", "load_async", "operator"]
