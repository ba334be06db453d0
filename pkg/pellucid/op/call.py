"""One call as rules and kernels see it: metas instead of tensors, by the names of the declaration. What it
gives: classes of several results, and `written` for ``out=``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..autograd.grad_mode import is_grad_enabled
from ..device import device as Device
from ..errors import ArgumentError, DeviceError, DTypeError, GradientError, ShapeError, warn
from ..tensors import dtypes as dt
from ..tensors.absent import public as known
from ..tensors.dtypes import DType, can_cast
from ..tensors.meta import Meta, meta
from ..tensors.shape import Size
from .arguments import named, wrong
from .schema import Schema

T = TypeVar("T", bound=type)


_RESULTS: dict[str, Any] = {}


def _again(name: str, values: tuple) -> Any:
    """Several results that were pickled: their class may stand in no module."""
    return _RESULTS[name](*values)


def results(name: str) -> Callable[[T], T]:
    """Let a class of several results, a named tuple, be printed as PyTorch's ``return_types.<name>``, and
    pickled by this name."""

    def describe(self: Any) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"{Size.prefix}return_types.{name}(\n{parts})"

    def declare(cls: T) -> T:
        made: Any = cls
        made.__repr__ = describe
        made.__reduce__ = lambda self: (_again, (name, tuple(self)))
        _RESULTS[name] = cls
        return cls

    return declare


class Call:
    """One call on the slow path: metas instead of tensors. Rules and kernels read it.

    ``call["x"]`` is the meta of a tensor argument, the type of a number, a list of metas, or the value of a
    static argument.
    """

    def __init__(self, op: Schema, args: dict[str, Any], device: Device):
        self.op = op
        self.args = args
        self.device = device
        self.outputs: list[Meta] = []
        self.compute: DType = dt.float32
        self.temporaries: dict[str, Meta] = {}

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def tensors(self) -> list[tuple[str, Meta]]:
        """Every tensor argument by the name that launches bind; those of a list as ``name[k]``."""
        found: list[tuple[str, Meta]] = []
        for a in self.op.arguments:
            value = self.args[a.name]
            if a.role == "tensors":
                found += [(f"{a.name}[{k}]", m) for k, m in enumerate(value)]
            elif isinstance(value, Meta):
                found.append((a.name, value))
        return found

    def operands(self) -> list[tuple[str, Meta | type]]:
        """Tensors and numbers that take part in the computation, in order."""
        return [
            (a.name, self.args[a.name])
            for a in self.op.arguments
            if a.role in ("tensor", "operand", "number", "optional")
            and self.args[a.name] not in (None, type(None))
        ]

    def temporary(self, name: str, shape, dtype: DType = dt.float32) -> Meta:
        """Memory that lives during this call only; launches bind it by name."""
        self.temporaries[name] = m = meta(shape, dtype, self.device)
        return m

    def lay_out(self, strides: tuple[int, ...]) -> None:
        """Give the output strides of the kernel's choice in the place of contiguous ones."""
        m = self.out
        self.outputs = [meta(m.shape, m.dtype, m.device, strides)]

    @property
    def out(self) -> Meta:
        return self.outputs[0]


def written(where: str, out: Any, result: Any, given: Sequence[Any] = (), is_exact: bool = False) -> Any:
    """``out=``: a result written over a tensor, which is resized to it; with a warning if it had elements.

    Args:
        where: the function, which converts a result where PyTorch's does.
        out: the tensor; of several results as many.
        result: what was computed.
        given: what it was computed of.
        is_exact: nothing is converted, whatever the function.

    Returns:
        ``out``, as ``result`` is.

    Raises:
        ArgumentError: it is no tensor, or not as many.
        GradientError: something requires grad.
        DTypeError, DeviceError: the result does not fit.
        ShapeError: it is resized, and shares memory.
    """
    exact = known()["exact out"]
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise ArgumentError(f"{where}: there are {len(result)} results. As out, give as many tensors.")
        pairs = zip(out, result, strict=True)
        several = [written(where, t, part, given, where in exact) for t, part in pairs]
        kind: Any = type(result)
        return kind(*several) if hasattr(kind, "_make") else tuple(several)
    if not hasattr(out, "_meta"):
        raise named(where, wrong("out", "Tensor", out))
    if is_grad_enabled() and (out._node is not None or result._node is not None):
        raise GradientError(
            f"{where}: out= records no gradient. Use it under pellucid.no_grad(), or assign the result."
        )
    have, wanted = result._meta, out._meta
    if have.device is not wanted.device:
        raise DeviceError(f"{where}: the result is on {have.device}, out on {wanted.device}. Give one there.")
    is_exact |= where in exact and where not in ("max", "min")  # those of two tensors convert
    if have.dtype is not wanted.dtype and (is_exact or not can_cast(have.dtype, wanted.dtype)):
        raise DTypeError(f"{where}: a result of {have.dtype} does not fit into out of {wanted.dtype}.")
    if have.shape == wanted.shape:
        return out.copy_(result)
    if wanted.numel:
        repeats = any(s == 0 and n > 1 for s, n in zip(wanted.strides, wanted.shape, strict=True))
        tensors = (t for v in given for t in (v if isinstance(v, (list, tuple)) else (v,)))
        if repeats or any(getattr(t, "_storage", None) is out._storage for t in tensors):
            raise ShapeError(
                f"{where}: out has shape {tuple(wanted.shape)}, the result {tuple(have.shape)}, and out "
                f"shares memory with {'itself' if repeats else 'an argument'}. Give another tensor."
            )
        shapes = f"{tuple(wanted.shape)} and is resized to {tuple(have.shape)}, that of the result"
        warn(f"{where}: out had shape {shapes}. Give a tensor without elements.")
        return out.resize_(have.shape).copy_(result)
    out.data = result.to(wanted.dtype)
    return out
