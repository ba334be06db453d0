"""The functions of TensorFlow Lite's operators, by groups, in terms of ops."""

from . import elementwise, recurrent, reductions, shapes, signal, windows

__all__ = ["elementwise", "recurrent", "reductions", "shapes", "signal", "windows"]
