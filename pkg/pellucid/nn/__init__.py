"""Layers, losses and what holds them: PyTorch's ``torch.nn``."""

from . import functional, init, utils
from .modules.activation import (  # fmt: skip
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
)
from .modules.attention import MultiheadAttention
from .modules.container import ModuleDict, ModuleList, ParameterList, Sequential
from .modules.conv import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from .modules.dropout import Dropout
from .modules.embedding import Embedding
from .modules.linear import Identity, Linear
from .modules.loss import (  # fmt: skip
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from .modules.module import Module
from .modules.norm import LayerNorm, RMSNorm
from .modules.pool import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
from .modules.shape import Flatten, Unflatten
from .parameter import Parameter

__all__ = [
    "ELU", "GELU", "GLU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "BCELoss",
    "BCEWithLogitsLoss", "Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "CrossEntropyLoss",
    "Dropout", "Embedding", "Flatten", "Hardsigmoid", "Hardswish", "Hardtanh", "HuberLoss", "Identity",
    "KLDivLoss", "L1Loss", "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss",
    "MaxPool1d", "MaxPool2d", "Mish", "Module", "ModuleDict", "ModuleList", "MultiheadAttention", "NLLLoss",
    "Parameter", "ParameterList", "RMSNorm", "ReLU", "ReLU6", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
    "Softmax", "Softmin", "Softplus", "Softsign", "Tanh", "Unflatten", "functional", "init", "utils",
]  # fmt: skip
