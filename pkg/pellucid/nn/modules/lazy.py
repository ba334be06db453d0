"""Layers that learn from their first input how many features or channels it has."""

from __future__ import annotations

from typing import Any

from ...errors import RangeError
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..parameter import UninitializedBuffer, UninitializedParameter
from . import batchnorm, conv, linear
from .module import Module


class _Lazy(Module):
    """Becomes the layer that it stands for at the first call, or where a state is loaded.

    Attributes:
        _becomes: the class of that layer, whose first argument is not given.
        _missing: the attribute that is 0 until then.
        _axis: where the first input has it.
    """

    _becomes: type
    _missing: str
    _axis = 1
    # The third and fourth settings where they are others than those of the layer.
    _usual: dict[str, Any] = {}

    def __init__(self, *args: Any, device=None, dtype=None, **settings: Any):
        super().__init__()
        usual = list(self._usual.items())[max(len(args) - 2, 0) :]
        settings = {**dict(usual), **settings, "device": device, "dtype": dtype}
        # Any number that groups divide: what it is gives the names, and refuses what is wrong.
        size = settings.get("groups", args[5] if len(args) > 5 and "Conv" in type(self).__name__ else 1)
        pattern = type(self)._becomes(size, *args, **{**settings, "device": "meta"})
        values = {k: v for k, v in pattern.__dict__.items() if k not in pattern._kinds}
        self.__dict__ |= {k: v for k, v in values.items() if k not in ("_kinds", "training")}
        self.__dict__[self._missing] = pattern.__dict__[self._missing] = 0
        self.__dict__["_pattern"] = pattern
        for name, kind in pattern._kinds.items():
            found = pattern.__dict__[name]
            if kind == "parameter":
                made = UninitializedParameter(device=device, dtype=dtype)
                self.register_parameter(name, None if found is None else made)
            elif found is None or not found.dtype.is_floating_point:
                self.register_buffer(
                    name, None if found is None else tensor(0, dtype=found.dtype, device=device)
                )
            else:
                self.register_buffer(name, UninitializedBuffer(device=device, dtype=dtype))
        self.__dict__["_given"] = args, settings

    def has_uninitialized_params(self) -> bool:
        """Whether the number is not known yet."""
        return self.__dict__[self._missing] == 0

    def _become(self, size: int) -> None:
        """Make the parameters, each of which stays the object that it is, and become the layer."""
        args, settings = self.__dict__.pop("_given")
        del self.__dict__["_pattern"]
        kind = type(self)._becomes
        like = next((t for t in (*self.parameters(), *self.buffers())), None)
        if like is not None:
            settings = {**settings, "device": like.device}
        made = kind(size, *args, **settings)
        for name, t in made.__dict__.items():
            where = made._kinds.get(name)
            if where == "parameter" and t is not None:
                self.__dict__[name].data = t.detach().to(self.__dict__[name].dtype)
                self.__dict__[name].__class__ = UninitializedParameter.cls_to_become
            elif name not in ("_kinds", "training", "_hooks") and where != "parameter":
                self.__dict__[name] = t
        self.__class__ = kind

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else next(iter(kwargs.values()))
        if not isinstance(first, Tensor) or first.dim() == 0:
            raise RangeError(f"{type(self).__name__}: the first input tells the sizes; it must be a tensor.")
        self._become(first.shape[self._channels(first)])
        return self(*args, **kwargs)

    def _channels(self, input: Tensor) -> int:
        return self._axis

    def extra_repr(self) -> str:
        return self.__dict__["_pattern"].extra_repr()

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        weight = state_dict.get(f"{prefix}weight", state_dict.get(f"{prefix}running_mean"))
        if weight is not None and tuple(weight.shape) != (0,):
            self._become(self._size_of(weight))
        lists = missing_keys, unexpected_keys, error_msgs
        Module._load_from_state_dict(self, state_dict, prefix, local_metadata, strict, *lists)

    def _size_of(self, weight: Any) -> int:
        return weight.shape[0]


class _LazyConv(_Lazy):
    _missing = "in_channels"

    def _channels(self, input: Tensor) -> int:
        return 1 if input.dim() == int(type(self).__name__[-2]) + 2 else 0

    def _size_of(self, weight: Any) -> int:
        turned = "Transpose" in type(self).__name__
        return weight.shape[0] if turned else weight.shape[1] * self.__dict__["groups"]


class LazyLinear(_Lazy):
    """`Linear` whose ``in_features`` the first input tells."""

    _becomes, _missing, _axis = linear.Linear, "in_features", -1

    def _size_of(self, weight: Any) -> int:
        return weight.shape[1]


class LazyConv1d(_LazyConv):
    """`Conv1d` whose ``in_channels`` the first input tells."""

    _becomes = conv.Conv1d


class LazyConv2d(_LazyConv):
    """`Conv2d` whose ``in_channels`` the first input tells."""

    _becomes = conv.Conv2d


class LazyConv3d(_LazyConv):
    """`Conv3d` whose ``in_channels`` the first input tells."""

    _becomes = conv.Conv3d


class LazyConvTranspose1d(_LazyConv):
    """`ConvTranspose1d` whose ``in_channels`` the first input tells."""

    _becomes = conv.ConvTranspose1d


class LazyConvTranspose2d(_LazyConv):
    """`ConvTranspose2d` whose ``in_channels`` the first input tells."""

    _becomes = conv.ConvTranspose2d


class LazyConvTranspose3d(_LazyConv):
    """`ConvTranspose3d` whose ``in_channels`` the first input tells."""

    _becomes = conv.ConvTranspose3d


class _LazyNorm(_Lazy):
    _missing = "num_features"


_TRACKED = {"affine": True, "track_running_stats": True}


class LazyBatchNorm1d(_LazyNorm):
    """`BatchNorm1d` whose ``num_features`` the first input tells."""

    _becomes = batchnorm.BatchNorm1d


class LazyBatchNorm2d(_LazyNorm):
    """`BatchNorm2d` whose ``num_features`` the first input tells."""

    _becomes = batchnorm.BatchNorm2d


class LazyBatchNorm3d(_LazyNorm):
    """`BatchNorm3d` whose ``num_features`` the first input tells."""

    _becomes = batchnorm.BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm):
    """`InstanceNorm1d` whose ``num_features`` the first input tells."""

    _becomes, _usual = batchnorm.InstanceNorm1d, _TRACKED


class LazyInstanceNorm2d(_LazyNorm):
    """`InstanceNorm2d` whose ``num_features`` the first input tells."""

    _becomes, _usual = batchnorm.InstanceNorm2d, _TRACKED


class LazyInstanceNorm3d(_LazyNorm):
    """`InstanceNorm3d` whose ``num_features`` the first input tells."""

    _becomes, _usual = batchnorm.InstanceNorm3d, _TRACKED


__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d",
    "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip
