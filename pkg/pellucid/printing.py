"""How tensors print: as PyTorch's, summarised past a thousand elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import autograd
from . import dtypes as dt

if TYPE_CHECKING:
    from .tensor import Tensor

_options = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80}


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
) -> None:
    """Change how tensors print.

    Args:
        precision: digits after the point.
        threshold: elements from which a tensor is summarised.
        edgeitems: items shown at each end of a summarised axis.
        linewidth: characters per line.

    Source: https://pytorch.org/docs/stable/generated/torch.set_printoptions.html
    """
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            _options[name] = value


def describe(x: Tensor) -> str:
    """The text of ``repr(x)``. Waits for the values."""
    m = x._meta
    suffix = []
    if m.dtype.is_quantized or m.device.type == "meta":
        return f"tensor(..., size={tuple(m.shape)}, dtype={m.dtype}, device='{m.device}')"
    array = _corners(x) if m.numel > _options["threshold"] else x.detach().numpy()
    text = _values(array, m)
    if m.numel == 0 and m.shape != (0,):
        suffix.append(f"size={tuple(m.shape)}")
    if m.device.type != "webgpu":
        suffix.append(f"device='{m.device}'")
    if m.dtype not in (dt.get_default_dtype(), dt.int64, dt.bool_) or (
        m.numel == 0 and m.dtype is not dt.get_default_dtype()
    ):
        suffix.append(f"dtype={m.dtype}")
    if x._node is autograd.LEAF:
        suffix.append("requires_grad=True")
    elif x._node is not None:
        suffix.append(f"grad_fn={x._node!r}")
    body = f"tensor({text}"
    return body + "".join(f", {s}" for s in suffix) + ")"


def _corners(x: Tensor) -> np.ndarray:
    """Only the items that are shown, so that printing a large tensor reads little."""
    from .ops.movement import cat, slice_dim

    edge = _options["edgeitems"]
    x = x.detach()
    for k, length in enumerate(x._meta.shape):
        if length > 2 * edge:
            x = cat([slice_dim(x, k, 0, edge + 1, 1), slice_dim(x, k, length - edge, length, 1)], k)
    return x.numpy()


def _values(array: np.ndarray, m) -> str:
    if array.size == 0:
        return "[]"
    summarised = m.numel > _options["threshold"]
    kept = array
    formatter = _formatter(kept)
    return _nested(array, tuple(m.shape), formatter, summarised, len("tensor("))


def _formatter(array: np.ndarray):
    precision = _options["precision"]
    if array.dtype.kind == "b":
        width = max(len(str(bool(v))) for v in array.reshape(-1))
        return lambda v: str(bool(v)).rjust(width if array.ndim else 0)
    if array.dtype.kind in "iu":
        width = max(len(str(v)) for v in array.reshape(-1))
        return lambda v: str(int(v)).rjust(width if array.ndim else 0)
    finite = array[np.isfinite(array) & (array != 0)].astype(np.float64)
    if (finite.size and np.all(finite == np.trunc(finite)) and np.abs(finite).max() < 1e8) or not finite.size:
        form = lambda v: f"{v:.0f}." if np.isfinite(v) else str(float(v))  # noqa: E731
    else:
        low, high = np.abs(finite).min(), np.abs(finite).max()
        if high / low > 1000 or high > 1e8 or low < 1e-4:
            form = lambda v: f"{v:.{precision}e}" if np.isfinite(v) else str(float(v))  # noqa: E731
        else:
            form = lambda v: f"{v:.{precision}f}" if np.isfinite(v) else str(float(v))  # noqa: E731
    if not array.ndim:
        return form
    width = max(len(form(v)) for v in array.reshape(-1))
    return lambda v: form(v).rjust(width)


def _nested(array: np.ndarray, shape: tuple[int, ...], form, summarised: bool, indent: int) -> str:
    if not shape:
        return form(array.reshape(()).item() if array.dtype.kind != "f" else float(array))
    edge = _options["edgeitems"]
    cut = summarised and shape[0] > 2 * edge
    items = list(array)
    if cut:
        items = items[:edge] + items[-edge:]
    if len(shape) == 1:
        pieces = [form(v) for v in items]
        if cut:
            pieces.insert(edge, " ...")
        lines, line, room = [], "", _options["linewidth"] - indent - 2
        for k, piece in enumerate(pieces):
            addition = piece if not line else f", {piece}"
            if line and len(line) + len(addition) > room:
                lines.append(line + ",")
                line = piece
            else:
                line += addition
            if k == len(pieces) - 1:
                lines.append(line)
        return "[" + ("\n" + " " * (indent + 1)).join(lines) + "]"
    pieces = [_nested(v, shape[1:], form, summarised, indent + 1) for v in items]
    if cut:
        pieces.insert(edge, "...")
    separator = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + separator.join(pieces) + "]"
