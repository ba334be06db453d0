"""Writing pickles that hold tensors, as `torch.save` does: PyTorch's names, protocol 2."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from struct import pack
from typing import Any

import numpy as np

from ..device import device as Device
from ..errors import ArgumentError
from ..nn.parameter import Parameter
from ..tensors.dtypes import DType
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from ..weights.formats.unpickler import STORAGES

_STORAGE_OF = {d: name for name, d in STORAGES.items()}


class Pickler:
    """One pickle.

    Args:
        place: gives the key and the number of elements of a tensor's storage, and keeps the storage.
    """

    def __init__(self, place: Callable[[Tensor], tuple[str, int]]):
        self._place = place
        self._out = bytearray(b"\x80\x02")
        # What was written, by identity: once and for all, so that what is shared is shared again.
        self._memo: dict[Any, int] = {}
        self._kept: list[Any] = []

    def dump(self, value: Any) -> bytes:
        """The bytes of a value.

        Raises:
            ArgumentError: it holds something that cannot be read again without executing code.
        """
        self._save(value)
        return bytes(self._out + b".")

    def _remember(self, key: Any) -> None:
        self._memo[key] = len(self._memo)
        self._out += b"r" + pack("<I", self._memo[key])

    def _known(self, key: Any) -> bool:
        if key in self._memo:
            self._out += b"j" + pack("<I", self._memo[key])
            return True
        return False

    def _global(self, name: str) -> None:
        if not self._known(("global", name)):
            self._out += b"c" + name.replace(" ", "\n").encode() + b"\n"
            self._remember(("global", name))

    def _call(self, name: str, *arguments: Any) -> None:
        self._global(name)
        self._save_tuple(arguments)
        self._out += b"R"

    def _save(self, value: Any) -> None:
        kind = type(value)
        if (simple := _SIMPLE.get(kind)) is not None:
            simple(self, value)
            return
        if isinstance(value, np.generic):
            self._save(value.item())
            return
        if isinstance(value, DType):
            self._global(f"torch {value.name}")
            return
        if self._known(id(value)):
            return
        self._kept.append(value)
        if isinstance(value, Parameter):
            self._call("torch._utils _rebuild_parameter", value.detach(), value.requires_grad, OrderedDict())
        elif isinstance(value, Tensor):
            self._save_tensor(value)
        elif isinstance(value, Size):
            self._call("torch Size", tuple(value))
        elif isinstance(value, Device):
            self._call("torch device", "cpu" if value.type == "webgpu" else value.type)
        elif kind is tuple:
            self._save_tuple(value)
        elif kind is set:
            self._call("__builtin__ set", list(value))
        elif isinstance(value, list):
            self._out += b"]"
            self._remember(id(value))
            self._items(b"e", value)
            return
        elif isinstance(value, dict):
            self._save_dict(value)
            return
        else:
            raise ArgumentError(
                f"save: a {kind.__module__}.{kind.__qualname__} cannot be read again without executing code. "
                "Save tensors, numbers, texts and containers of them, such as a state_dict()."
            )
        self._remember(id(value))

    def _save_tuple(self, values: tuple) -> None:
        if len(values) > 3:
            self._out += b"("
        for value in values:
            self._save(value)
        self._out += (b")", b"\x85", b"\x86", b"\x87")[len(values)] if len(values) <= 3 else b"t"

    def _items(self, end: bytes, values: Any) -> None:
        self._out += b"("
        for value in values:
            self._save(value)
        self._out += end

    def _save_dict(self, value: dict) -> None:
        if isinstance(value, OrderedDict):
            self._call("collections OrderedDict")
        else:
            self._out += b"}"
        self._remember(id(value))
        self._items(b"u", (part for pair in value.items() for part in pair))
        metadata = getattr(value, "_metadata", None)
        if isinstance(value, OrderedDict) and metadata is not None:
            self._save({"_metadata": metadata})
            self._out += b"b"

    def _save_tensor(self, value: Tensor) -> None:
        if value.dtype not in _STORAGE_OF:
            raise ArgumentError(
                f"save: PyTorch has no storage of {value.dtype}. Convert the tensor first, or write it with "
                "pellucid.weights.save_file."
            )
        key, numel = self._place(value)
        self._global("torch._utils _rebuild_tensor_v2")
        self._out += b"(("
        self._save("storage")
        self._global(f"torch {_STORAGE_OF[value.dtype]}")
        for part in (key, "cpu", numel):
            self._save(part)
        self._out += b"tQ"
        for part in (value._offset, tuple(value.shape), tuple(value.stride()), value.requires_grad):
            self._save(part)
        self._call("collections OrderedDict")
        self._out += b"tR"

    def _save_integer(self, value: int) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self._out += b"J" + pack("<i", value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(data) > 255:
                raise ArgumentError("save: an integer has more than 255 bytes. Save it as a text.")
            self._out += b"\x8a" + pack("<B", len(data)) + data

    def _save_text(self, value: str) -> None:
        data = value.encode("utf-8", "surrogatepass")
        self._out += b"X" + pack("<I", len(data)) + data


_SIMPLE: dict[type, Callable[[Pickler, Any], None]] = {
    type(None): lambda p, value: p._out.extend(b"N"),
    bool: lambda p, value: p._out.extend(b"\x88" if value else b"\x89"),
    int: Pickler._save_integer,
    float: lambda p, value: p._out.extend(b"G" + pack(">d", value)),
    str: Pickler._save_text,
    bytes: lambda p, value: p._call("_codecs encode", value.decode("latin1"), "latin1"),
}
