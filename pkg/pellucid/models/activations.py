"""Activations of feed-forwards by the names that ``config.json`` has."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..errors import FormatError
from ..nn import functional as F
from ..tensors.tensor import Tensor
from ..weights.fields import shown

_TANH_GELU = partial(F.gelu, approximate="tanh")


def _squared_relu(x: Tensor) -> Tensor:
    return F.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu, "swish": F.silu, "relu": F.relu, "relu2": _squared_relu, "gelu": F.gelu,
    "gelu_new": _TANH_GELU, "gelu_fast": _TANH_GELU, "gelu_pytorch_tanh": _TANH_GELU, "tanh": F.tanh,
}  # fmt: skip


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function of that name.

    Raises:
        FormatError: there is none.
    """
    if name not in ACTIVATIONS:
        raise FormatError(
            f"config.json: hidden_act {shown(name)} is not known. There are {', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]
