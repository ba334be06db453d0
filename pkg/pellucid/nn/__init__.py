"""Layers, losses and what holds them: PyTorch's ``torch.nn``."""

from . import functional, init, utils
from .activation import (
    ELU,
    GELU,
    GLU,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softsign,
    Tanh,
)  # fmt: skip
from .attention import MultiheadAttention
from .container import ModuleDict, ModuleList, ParameterList, Sequential
from .conv import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from .criterion import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)  # fmt: skip
from .dropout import Dropout
from .embedding import Embedding
from .linear import Identity, Linear
from .module import Module
from .norm import LayerNorm, RMSNorm
from .parameter import Parameter
from .pool import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
from .shape import Flatten, Unflatten

__all__ = [
    "ELU", "GELU", "GLU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "BCELoss",
    "BCEWithLogitsLoss", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "CrossEntropyLoss",
    "Dropout", "Embedding", "Flatten", "Hardsigmoid", "Hardswish", "Hardtanh", "HuberLoss", "Identity",
    "KLDivLoss", "L1Loss", "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss",
    "MaxPool1d", "MaxPool2d", "Mish", "Module", "ModuleDict", "ModuleList", "MultiheadAttention", "NLLLoss",
    "Parameter", "ParameterList", "RMSNorm", "ReLU", "ReLU6", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
    "Softmax", "Softmin", "Softplus", "Softsign", "Tanh", "Unflatten", "functional", "init", "utils",
]  # fmt: skip
