"""Pickles that hold tensors and modules, as `torch.save` writes them: PyTorch's names, protocol 2."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..device import device as Device
from ..errors import ArgumentError
from ..nn.parameter import Parameter
from ..nn.state import Stateful, pytorch_state
from ..tensors.absent import public
from ..tensors.dtypes import DType
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from ..weights.formats.unpickler import STORAGES

_STORAGE_OF = {d: name for name, d in STORAGES.items()}


class _Name:
    """A name of PyTorch's, written as such: pickle itself would look for it in ``torch``."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self) -> None:
        """Never called; pickle wants what makes an object to be callable."""


_named = cache(_Name)


class _Storage(tuple):
    """What a tensor's storage is named by."""


# The one in Python: that in C has no `save_global` to replace, and looks the names up itself.
_InPython: Any = vars(pickle)["_Pickler"]


class Pickler(_InPython):
    """One pickle.

    Args:
        place: gives the key and the number of elements of a tensor's storage, and keeps the storage.
    """

    def __init__(self, place: Callable[[Tensor], tuple[str, int]]):
        self._place, self._out = place, io.BytesIO()
        super().__init__(self._out, 2)

    def pickled(self, value: Any) -> bytes:
        """The bytes of a value.

        Raises:
            ArgumentError: it holds something that cannot be found again by its name, such as a lambda.
        """
        try:
            self.dump(value)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                f"save: pickle cannot write it ({error!s:.200}). Define functions and classes at the top of "
                "a module, or save the state_dict()."
            ) from error
        return self._out.getvalue()

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, np.generic):
            obj = obj.item()
        elif isinstance(obj, DType):
            obj = _named(f"torch {obj.name}")
        super().save(obj, save_persistent_id)

    def persistent_id(self, obj: Any) -> tuple | None:
        return tuple(obj) if type(obj) is _Storage else None

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = obj.name if isinstance(obj, _Name) else _pytorch_name(obj)
        if known is None:
            super().save_global(obj, name)
        else:
            self.write(pickle.GLOBAL + known.replace(" ", "\n").encode() + b"\n")
            self.memoize(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _Name):
            return obj.name
        if isinstance(obj, Parameter):
            parts = (obj.detach(), obj.requires_grad, OrderedDict())
            return _named("torch._utils _rebuild_parameter"), parts
        if isinstance(obj, Tensor):
            return _named("torch._utils _rebuild_tensor_v2"), self._parts(obj)
        if isinstance(obj, Size):
            return _named("torch Size"), (tuple(obj),)
        if isinstance(obj, Device):
            return _named("torch device"), ("cpu" if obj.type == "webgpu" else obj.type,)
        if isinstance(obj, Stateful) and type(obj).__setstate__ is Stateful.__setstate__:
            made: Any = obj.__reduce_ex__(2)
            make, arguments, state, *more = made
            return make, arguments, pytorch_state(state), *more
        return NotImplemented

    def _parts(self, t: Tensor) -> tuple:
        if t.dtype not in _STORAGE_OF:
            raise ArgumentError(
                f"save: PyTorch has no storage of {t.dtype}. Convert the tensor first, or write it with "
                "pellucid.weights.save_file."
            )
        key, numel = self._place(t)
        storage = _Storage(("storage", _named(f"torch {_STORAGE_OF[t.dtype]}"), key, "cpu", numel))
        return storage, t._offset, tuple(t.shape), tuple(t.stride()), t.requires_grad, OrderedDict()


def _pytorch_name(obj: Any) -> str | None:
    """PyTorch's name of a layer's class that it has as well, so that it reads whole models."""
    name = getattr(obj, "__name__", "")
    is_layer = isinstance(obj, type) and obj.__module__.startswith("pellucid.nn.modules.")
    return f"torch.nn {name}" if is_layer and name in public()["torch.nn"] else None
