"""How tensors print: as PyTorch's, summarised past a thousand elements."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

import numpy as np

from ..autograd.edges import LEAF
from ..errors import RangeError
from ..ops.shape.joining import cat
from ..ops.shape.slicing import slice_dim
from . import dtypes as dt
from .tensor import Tensor

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}
_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print.

    Args:
        precision: digits after the point.
        threshold: elements from which a tensor is summarised.
        edgeitems: items shown at each end of a summarised axis.
        linewidth: characters per line.
        profile: all four at once: "default", "short" or "full", which summarises nothing; the others come
            on top of it.
        sci_mode: exponents always or never; if None, where the range of the numbers is wide.

    Raises:
        RangeError: there is no such profile.

    Source: https://pytorch.org/docs/stable/generated/torch.set_printoptions.html

    Example:
        >>> import pellucid as torch
        >>> torch.set_printoptions(precision=2, sci_mode=True)
        >>> torch.tensor([1.0, 0.5], device="cpu")
        tensor([1.00e+00, 5.00e-01], device='cpu')
        >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise RangeError(
                f"set_printoptions: profile must be one of {', '.join(_PROFILES)}, not {profile!r}."
            )
        _options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def describe(x: Tensor) -> str:
    """The text of ``repr(x)``. Waits for the values."""
    m = x._meta
    if m.dtype.is_quantized or m.device.type == "meta":
        return f"tensor(..., size={tuple(m.shape)}, dtype={m.dtype}, device='{m.device}')"
    suffixes = []
    if m.device.type != "webgpu":
        suffixes.append(f"device='{m.device}'")
    if m.numel == 0 and m.shape != (0,):
        suffixes.append(f"size={tuple(m.shape)}")
    usual = (dt.get_default_dtype(), dt.scalar_dtype(complex))
    usual += (dt.int64, dt.bool_) if m.numel else ()
    if m.dtype not in usual:
        suffixes.append(f"dtype={m.dtype}")
    if x._node is LEAF:
        suffixes.append("requires_grad=True")
    elif x._node is not None:
        suffixes.append(f"grad_fn=<{x._node.name().rpartition('::')[2]}>")
    return _joined("tensor(" + _values(x), suffixes) + ")"


def _joined(text: str, suffixes: list[str]) -> str:
    """What follows the values, on a new line where the last one is full."""
    room = _options["linewidth"]
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > room:
            text += f",\n{' ' * _INDENT}{suffix}"
            used = _INDENT + len(suffix)
        else:
            text += f", {suffix}"
            used += len(suffix) + 2
    return text


_INDENT = len("tensor(")


def _values(x: Tensor) -> str:
    m = x._meta
    if m.numel == 0:
        return "[]"
    summarised = m.numel > _options["threshold"]
    array = _corners(x) if summarised else x.detach().numpy()
    return _nested(array, tuple(m.shape), *_formatter(array), summarised, _INDENT)


def _corners(x: Tensor) -> np.ndarray:
    """Only the items that are shown, so that printing a large tensor reads little."""
    edge = _options["edgeitems"]
    x = x.detach()
    for k, length in enumerate(x._meta.shape):
        if length > 2 * edge:
            x = cat([slice_dim(x, k, 0, edge, 1), slice_dim(x, k, length - edge, length, 1)], k)
    return x.numpy()


def _formatter(array: np.ndarray) -> tuple[Callable[[Any], str], int]:
    """How one number is written, and how wide: zeros, NaN and infinities do not count for the width."""
    if array.dtype.kind == "c":
        (real, first), (imaginary, second) = _formatter(np.real(array)), _formatter(np.imag(array))

        def number(v) -> str:
            text = imaginary(v.imag).lstrip() + "j"
            return real(v.real) + (text if text[0] == "-" else f"+{text}")

        return number, first + second + 1
    if array.dtype.kind != "f":
        width = max(len(str(v)) for v in array.reshape(-1).tolist())
        return lambda v: str(v.item()).rjust(width), width
    form = _float_form(array[np.isfinite(array) & (array != 0)].astype(np.float64))
    width = max((len(form(v)) for v in array.reshape(-1).tolist() if isfinite(v) and v), default=1)
    return lambda v: form(float(v)).rjust(width), width


def _float_form(finite: np.ndarray) -> Callable[[float], str]:
    """Whole numbers with a point only, a wide range with exponents, others with fixed digits."""
    precision, wanted = _options["precision"], _options["sci_mode"]
    if wanted:
        return lambda v: f"{v:.{precision}e}"
    if finite.size and wanted is None:
        low, high = np.abs(finite).min(), np.abs(finite).max()
        if high / low > 1000 or high > 1e8 or low < 1e-4:
            return lambda v: f"{v:.{precision}e}"
    if np.all(finite == np.ceil(finite)):
        return lambda v: f"{v:.0f}." if isfinite(v) else f"{v:.0f}"
    return lambda v: f"{v:.{precision}f}"


def _nested(
    array: np.ndarray, shape: tuple[int, ...], form: Callable, width: int, summarised: bool, indent: int
) -> str:
    if not shape:
        return form(array[()])
    edge = _options["edgeitems"]
    cut = summarised and shape[0] > 2 * edge
    if len(shape) == 1:
        pieces = [form(v) for v in array]
        if cut:
            pieces.insert(edge, " ...")
        count = max(1, (_options["linewidth"] - indent) // (width + 2))
        lines = [", ".join(pieces[k : k + count]) for k in range(0, len(pieces), count)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    pieces = [_nested(v, shape[1:], form, width, summarised, indent + 1) for v in array]
    if cut:
        pieces.insert(edge, "...")
    separator = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + separator.join(pieces) + "]"
