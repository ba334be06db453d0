"""`prepare`, `prepare_qat` and `convert`: a model with observers, trained or calibrated, then quantized."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from ....autograd.grad_mode import under
from ....errors import ArgumentError, RangeError
from ....quant.weight import weight_from_planes
from ....tensors import dtypes as dt
from ....tensors.tensor import Tensor
from ... import functional as F
from ...func import functional_call
from ...modules.conv import Conv2d
from ...modules.linear import Linear
from ...modules.module import Module
from ...parameter import Parameter
from .fake_quantize import FakeQuantize
from .observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    PerBlockMinMaxObserver,
    PerChannelMinMaxObserver,
)


class QConfig(NamedTuple):
    """How to quantize a layer: what makes the `FakeQuantize` of its input and of its weight.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.qconfig.QConfig.html

    Example:
        >>> from functools import partial
        >>> from pellucid.nn.ao.quantization import FakeQuantize, PerChannelMinMaxObserver, QConfig
        >>> weight = partial(FakeQuantize, PerChannelMinMaxObserver, dtype="int8", symmetric=True)
        >>> QConfig(activation=None, weight=weight).weight().activation_post_process.dtype
        'int8'
    """

    activation: Callable[[], FakeQuantize] | None
    weight: Callable[[], FakeQuantize]


def _config(weight: str, activation: str | None, block_size: int | None, observer: Any) -> QConfig:
    if block_size is None:
        of_weight = partial(FakeQuantize, PerChannelMinMaxObserver, dtype=weight, symmetric=True)
    else:
        of_weight = partial(
            FakeQuantize, PerBlockMinMaxObserver, block_size=block_size, dtype=weight, symmetric=True
        )
    of_input = None if activation is None else partial(FakeQuantize, observer, dtype=activation)
    return QConfig(of_input, of_weight)


def get_default_qconfig(
    weight: str = "int8", activation: str | None = "uint8", *, block_size: int | None = None
) -> QConfig:
    """A `QConfig` for calibration: the whole range of activations that data showed.

    Args:
        weight: a type of `ObserverBase`, symmetric, with a scale for each output channel.
        activation: a type, or None for floats.
        block_size: a scale for so many columns of each row of the weight instead.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.qconfig.default_qconfig.html
    """
    return _config(weight, activation, block_size, MinMaxObserver)


def get_default_qat_qconfig(
    weight: str = "int8", activation: str | None = "uint8", *, block_size: int | None = None
) -> QConfig:
    """A `QConfig` for training: activations by a running mean of their range.

    Args:
        weight, activation, block_size: as `get_default_qconfig` has them.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.qconfig.default_qat_qconfig.html
    """
    return _config(weight, activation, block_size, MovingAverageMinMaxObserver)


class _Prepared(Module):
    """A layer that quantizes its input and its weight on the way."""

    def __init__(self, layer: Any, config: QConfig):
        super().__init__()
        self.layer = layer
        self.weight_fake_quant = config.weight()
        self.input_fake_quant = None if config.activation is None else config.activation()

    def forward(self, x: Tensor) -> Tensor:
        if self.input_fake_quant is not None:
            x = self.input_fake_quant(x)
        weight = self.weight_fake_quant(self.layer.weight)
        return functional_call(self.layer, {"weight": weight}, (x,))


class QuantizedInput(Module):
    """A layer whose input is rounded to a narrow type with a scale that stays.

    Args:
        layer: the layer.
        fake: the `FakeQuantize` of its input, whose observer is off.
    """

    def __init__(self, layer: Module, fake: FakeQuantize):
        super().__init__()
        self.layer, self.input_fake_quant = layer, fake

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.input_fake_quant(x))


def _replaced(model: Module, kinds: tuple[type, ...], make: Callable[[Any], Module]) -> Module:
    """The model with each layer of these kinds exchanged."""
    if isinstance(model, kinds):
        return make(model)
    for name, child in list(model.named_children()):
        setattr(model, name, _replaced(child, kinds, make))
    return model


def prepare_qat(model: Module, qconfig: QConfig | None = None, *, inplace: bool = False) -> Module:
    """The model with fake quantization of the inputs and weights of its linear layers and convolutions.

    Train it as before, then `convert` it.

    Args:
        model: is left as it is, unless ``inplace``. A copy has parameters of its own, for which an optimizer
            is made afterwards.
        qconfig: of all layers; ``get_default_qat_qconfig()`` if None.
        inplace: change the model itself.

    Raises:
        ArgumentError: it is no module, or has no layer to quantize.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.prepare_qat.html

    Example:
        >>> import pellucid as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 2, device="cpu"))
        >>> prepared = torch.ao.quantization.prepare_qat(model)
        >>> loss = prepared(torch.randn(3, 4, device="cpu")).sum()
        >>> loss.backward()
        >>> torch.ao.quantization.convert(prepared.eval())(torch.ones(1, 4, device="cpu")).shape
        Size([1, 2])
    """
    if not isinstance(model, Module):
        raise ArgumentError(f"prepare_qat: takes a Module, not {type(model).__name__}.")
    config = get_default_qat_qconfig() if qconfig is None else qconfig
    if not any(isinstance(m, (Linear, Conv2d)) for m in model.modules()):
        raise ArgumentError("prepare_qat: the model has no Linear and no Conv2d to quantize.")
    model = model if inplace else deepcopy(model)
    return _replaced(model, (Linear, Conv2d), lambda layer: _Prepared(layer, config))


def prepare(model: Module, qconfig: QConfig | None = None, *, inplace: bool = False) -> Module:
    """The model with observers, for quantization after training: run it on data, then `convert` it.

    Args:
        model: is left as it is, unless ``inplace``.
        qconfig: of all layers; ``get_default_qconfig()`` if None.
        inplace: change the model itself.

    Raises:
        ArgumentError: it is no module, or has no layer to quantize.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.prepare.html
    """
    made = prepare_qat(model, get_default_qconfig() if qconfig is None else qconfig, inplace=inplace)
    for module in made.modules():
        if isinstance(module, FakeQuantize):
            module.disable_fake_quant()
    return made


def convert(model: Module, *, inplace: bool = False) -> Module:
    """The prepared model with quantized weights, for inference.

    INT8 weights with a scale per channel of linear layers become int8 matrices, a quarter as large, of which
    products read integers; other types become floats that lie on the grid of the type. Inputs are rounded
    with the scales that were observed.

    Args:
        model: of `prepare` or `prepare_qat`, run on data.
        inplace: change the model itself.

    Raises:
        RangeError: nothing was prepared.
        RuntimeError: a layer saw no data.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.convert.html
    """
    if not any(isinstance(m, _Prepared) for m in model.modules()):
        raise RangeError("convert: the model has no prepared layer. Call prepare() or prepare_qat() first.")
    model = model if inplace else deepcopy(model)
    return under(False, _replaced, model, (_Prepared,), _converted)


def _converted(prepared: _Prepared) -> Module:
    layer, fake = prepared.layer, prepared.weight_fake_quant
    if fake.observer_enabled:  # weights may have moved since they were last looked at
        fake.activation_post_process.reset_min_max_vals()
        fake.activation_post_process(layer.weight)
    observer = fake.activation_post_process
    is_rows = isinstance(observer, PerChannelMinMaxObserver) and observer.ch_axis == 0
    if isinstance(layer, Linear) and observer.dtype == "int8" and observer.symmetric and is_rows:
        scale, _ = fake.calculate_qparams()
        whole = (layer.weight.detach() / scale.unsqueeze(1)).round()
        quants = whole.clamp(observer.quant_min, observer.quant_max).to(dt.int8)
        layer.weight = Parameter(int8_matrix(quants, scale), requires_grad=False)
    else:
        layer.weight = Parameter(fake.quantized(layer.weight.detach()), requires_grad=False)
    if layer.bias is not None:
        layer.bias.requires_grad_(False)
    if prepared.input_fake_quant is None:
        return layer
    prepared.input_fake_quant.disable_observer()
    prepared.input_fake_quant.enable_fake_quant()
    return QuantizedInput(layer, prepared.input_fake_quant)


def int8_matrix(quants: Tensor, scale: Tensor) -> Tensor:
    """A weight of int8 rows with a scale each, as products read it.

    Args:
        quants: int8 (rows, columns).
        scale: float32 (rows,).
    """
    rows, columns = quants.shape
    padded = F.pad(quants.float(), (0, -columns % 32)).to(dt.int8)
    return weight_from_planes([padded, scale.float().contiguous()], "int8_rows", (rows, columns))
