"""Dynamic quantization of activations in a model: layers that round their input, or no longer do."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from ....errors import ArgumentError
from ....quant.activations import DynamicQuantization
from ....tensors.tensor import Tensor
from ...modules.module import Module

M = TypeVar("M", bound=Module)


class _Rounding(Module):
    """What a layer's class has before its own, to round what comes first."""

    input_quantization: DynamicQuantization
    _before: ClassVar[Any]  # the layer's own class

    def forward(self, input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if input.dtype.is_floating_point:  # not the ids of an embedding
            input = self.input_quantization(input)
        return super().forward(input, *args, **kwargs)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, input={self.input_quantization}"


def quantize_input(module: M, how: DynamicQuantization) -> M:
    """Have a layer round its input.

    Models that are loaded from checkpoints with quantized activations have such layers.

    Args:
        module: is changed; the first argument of its ``forward`` is a tensor.
        how: to which type, with which scales.

    Returns:
        The module, now of a subclass of its class.

    Raises:
        ArgumentError: it rounds its input already.

    Source: https://docs.pytorch.org/ao/stable/api_reference/generated/torchao.quantization.Int8DynamicActivationInt8WeightConfig.html

    Example:
        >>> import pellucid as torch
        >>> from pellucid.quant.activations import DynamicQuantization
        >>> layer = torch.nn.Linear(4, 2, device="cpu")
        >>> torch.ao.quantization.quantize_input(layer, DynamicQuantization("int8", 127.0))
        DynamicallyQuantizedLinear(in_features=4, out_features=2, bias=True, input=int8 per token)
    """
    kind = type(module)
    if issubclass(kind, _Rounding):
        raise ArgumentError(f"quantize_input: this {kind.__name__} rounds its input already.")
    module.input_quantization = how
    made: Any = type(f"DynamicallyQuantized{kind.__name__}", (_Rounding, kind), {"_before": kind})
    module.__class__ = made
    return module


def input_quantization(module: Module) -> DynamicQuantization | None:
    """How a layer rounds its input; None if it does not.

    Args:
        module: any.

    Example:
        >>> import pellucid as torch
        >>> torch.ao.quantization.input_quantization(torch.nn.Linear(4, 2, device="cpu")) is None
        True
    """
    return module.input_quantization if isinstance(module, _Rounding) else None


def float_inputs(model: M) -> M:
    """Have no layer of a model round its input any more: weights stay quantized, activations are float32.

    Args:
        model: is changed.

    Returns:
        The model.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.quant.activations import DynamicQuantization
        >>> layer = torch.nn.Linear(4, 2, device="cpu")
        >>> torch.ao.quantization.quantize_input(layer, DynamicQuantization("int8", 127.0))
        DynamicallyQuantizedLinear(in_features=4, out_features=2, bias=True, input=int8 per token)
        >>> torch.ao.quantization.float_inputs(layer)
        Linear(in_features=4, out_features=2, bias=True)
    """
    for module in model.modules():
        if isinstance(module, _Rounding):
            del module.input_quantization
            module.__class__ = type(module)._before
    return model
