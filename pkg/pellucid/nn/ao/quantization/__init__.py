"""Quantization of models: observers, fake quantization, training for it and calibration after it.

Names are those of ``torch.ao.quantization``.
"""

from .calibration import Calibrated, awq, calibrate, gptq, round_to_nearest
from .dynamic import float_inputs, input_quantization, quantize_input
from .fake_quantize import FakeQuantize
from .observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    ObserverBase,
    PerBlockMinMaxObserver,
    PerChannelMinMaxObserver,
)
from .prepare import QConfig, convert, get_default_qat_qconfig, get_default_qconfig, prepare, prepare_qat

__all__ = [
    "Calibrated",
    "FakeQuantize",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "ObserverBase",
    "PerBlockMinMaxObserver",
    "PerChannelMinMaxObserver",
    "QConfig",
    "awq",
    "calibrate",
    "convert",
    "float_inputs",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "gptq",
    "input_quantization",
    "prepare",
    "prepare_qat",
    "quantize_input",
    "round_to_nearest",
]
