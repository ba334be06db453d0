"""Derivatives by the graph that ops record; the formulas stand in the op table.

Modules: `grad_mode` (whether ops record), `edges` (where tensors stand in the graph), `nodes` and what they
save, `engine` (the walk), `recorder`, which ops call, and `derivatives` (`backward` and `grad`). On these
stand `function` (ops with a backward of their own), `functional`, `gradcheck`, `graph` and `anomaly`.
"""

from ..tensors.absent import refuse_others
from . import forward_ad, functional, graph
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .derivatives import backward, grad
from .function import Function
from .grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional",
    "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip

refuse_others("torch.autograd", globals())
