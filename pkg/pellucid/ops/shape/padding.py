"""pad, constant_pad_nd: more elements at the ends of axes."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...autograd.edges import labelled
from ...errors import ShapeError
from ...op.arguments import integers
from ...op.declaration import Call, op
from ...op.kernel import Launch, Params, register_type
from ...op.kernel.launch import per_line
from ...op.public import function
from ...op.rules import same
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from .joining import cat, copied, flip
from .movement import copy_
from .slicing import slice_dim

# By mode: what PyTorch calls the node, of so many axes.
_NODES = {
    "constant": "ConstantPadNdBackward0",
    "reflect": "ReflectionPad{}DBackward0",
    "replicate": "ReplicationPad{}DBackward0",
    "circular": "torch::autograd::CopySlices",
}
MODES = tuple(_NODES)
_OF_NUMPY: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
# The axes of planes, which one launch pads; and where a place outside lies inside, in shape/pad.
_PLANE = 2
_INSIDE = {
    "reflect": {},
    "replicate": {"inside": "clamp(at, 0, length - 1)"},
    "circular": {"inside": "at + select(0, length, at < 0) - select(0, length, at >= length)"},
}


@function(exports="nn.functional")
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | complex | None = None
) -> Tensor:
    """More elements, or fewer where negative, at the ends of the last axes.

    Args:
        input: any shape.
        pad: (before, after) of the last axis, then of the one before it, and so on.
        mode: what is added: "constant" ``value``; "reflect" the elements next to the end, mirrored at it;
            "replicate" the last element again; "circular" those at the other end.
        value: of the new elements; 0 if None.

    Raises:
        ShapeError: ``pad`` is odd, names more axes than there are, or asks for more than an axis has.
        NotImplementedError: another mode, or one but "constant" with a batch or channels among the axes.
        RuntimeError: a value for a mode that takes none.

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([1.0, 2.0, 3.0], device="cpu")
        >>> torch.nn.functional.pad(x, (1, 2)).tolist()
        [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]
        >>> torch.nn.functional.pad(x.reshape(1, 3), (1, 2), "reflect").tolist()
        [[2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]
    """
    if mode not in MODES:
        raise NotImplementedError(f"pad: mode {mode!r} does not exist. There are {', '.join(MODES)}.")
    if mode != "constant" and value is not None:
        raise RuntimeError(f"pad: mode {mode!r} takes no value, and it is {value}. Leave it out.")
    pad = integers(pad, "pad")
    if len(pad) % 2 or len(pad) > 2 * input.dim():
        raise ShapeError(f"pad: {tuple(pad)} must be pairs for at most the {input.dim()} axes of the input.")
    if mode != "constant" and not (2 <= len(pad) <= 6 and input.dim() - len(pad) // 2 in (1, 2)):
        raise NotImplementedError(
            f"pad: mode {mode!r} pads 1 to 3 axes behind the channels, and {tuple(pad)} are not pairs for "
            f"those of an input of {input.dim()} axes."
        )
    out = copied(_padded(input, pad, mode, value), input)
    return labelled(_NODES[mode].format(len(pad) // 2), out)


def _padded(input: Tensor, pad: tuple[int, ...], mode: str, value: float | complex | None) -> Tensor:
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)]
    if mode == "constant" and sum(max(pair) > 0 for pair in pairs) > 1:
        return _framed(input, pairs, 0 if value is None else value)
    # Neighbours of a packed dtype share a word, which is another lane's, too.
    is_whole = mode != "constant" and input.dtype.itemsize >= 4
    done = _PLANE if is_whole and min(min(pair) for pair in pairs[:_PLANE]) >= 0 else 0
    if done:
        for k, pair in enumerate(pairs[:done]):
            for count in pair:
                _check_count(input, input.dim() - 1 - k, count, mode)
        input = pad_planes(input, tuple(pairs[:done]), mode)
    for k, (before, after) in enumerate(pairs[done:], done):
        dim = input.dim() - 1 - k
        middle = _cut(input, dim, before, after)
        # What is mirrored or repeated may be among what goes.
        source = middle if mode == "circular" else input
        begin = _added(source, dim, before, mode, value, at_end=False) if before > 0 else None
        end = _added(source, dim, after, mode, value, at_end=True) if after > 0 else None
        input = middle
        whole = [part for part in (begin, input, end) if part is not None]
        if len(whole) > 1:
            input = cat(whole, dim)
    return input


def _cut(input: Tensor, dim: int, before: int, after: int) -> Tensor:
    """An axis without what negative numbers take of its ends."""
    length = input.shape[dim] + min(before, 0) + min(after, 0)
    if length < 0:
        raise ShapeError(
            f"pad: {before} and {after} take more than the {input.shape[dim]} elements of axis {dim}."
        )
    return input.narrow(dim, max(-before, 0), length) if before < 0 or after < 0 else input


def _framed(input: Tensor, pairs: list[tuple[int, int]], value: float | complex) -> Tensor:
    """A constant around what stays: both are written once, whatever the number of axes."""
    for k, pair in enumerate(pairs):
        input = _cut(input, input.dim() - 1 - k, *pair)
    around = [(0, 0)] * (input.dim() - len(pairs)) + [(max(a, 0), max(b, 0)) for a, b in pairs[::-1]]
    shape = [a + n + b for n, (a, b) in zip(input.shape, around, strict=True)]
    out = input.new_full(tuple(shape), value)
    middle = out
    for k, (n, (before, _)) in enumerate(zip(input.shape, around, strict=True)):
        middle = middle.narrow(k, before, n)
    copy_(middle, input)
    return out


def _added(
    input: Tensor, dim: int, count: int, mode: str, value: float | complex | None, *, at_end: bool
) -> Tensor:
    """The new elements at one end of an axis."""
    length = input.shape[dim]
    shape = [count if k == dim else n for k, n in enumerate(input.shape)]
    if mode == "constant":
        return input.new_full(tuple(shape), 0 if value is None else value)
    _check_count(input, dim, count, mode)
    if mode == "replicate":
        return input.narrow(dim, length - 1 if at_end else 0, 1).expand(tuple(shape))
    if mode == "circular":
        return input.narrow(dim, 0 if at_end else length - count, count)
    return slice_dim(input.narrow(dim, length - 1 - count if at_end else 1, count), dim, None, None, -1)


def _check_count(input: Tensor, dim: int, count: int, mode: str) -> None:
    """Refuse more new elements at an end of an axis than a mode gives."""
    length = input.shape[dim]
    most = {"reflect": length - 1, "circular": length, "replicate": count * min(length, 1)}[mode]
    if count and count > most:
        raise ShapeError(
            f"pad: {count} elements at an end of axis {dim}, which has {length}; mode {mode!r} gives at most "
            f"{max(most, 0)}. Pad less."
        )


def _plane_shape(call: Call) -> Size:
    shape = list(call["input"].shape)
    for k, pair in enumerate(call["pairs"]):
        shape[-1 - k] += sum(pair)
    return Size(shape)


def _plane_launch(call: Call) -> Launch:
    sides, pairs = (call["input"].shape, call.out.shape), call["pairs"]
    params: Params = {"lines": prod(call.out.shape[:-1]), "left": pairs[0][0], "top": 0}
    for side, shape in zip(("in", "out"), sides, strict=True):
        params |= {f"{side}_width": shape[-1], f"{side}_height": shape[-2] if len(pairs) > 1 else 1}
    if len(pairs) > 1:
        params["top"] = pairs[1][0]
    holes = {"T": register_type(call.out.dtype), **_INSIDE[call["mode"]]}
    return per_line("shape/pad", params, holes, {"x": "input"})


def _plane_reference(input, pairs, mode):
    widths = [(0, 0)] * (input.ndim - len(pairs)) + list(pairs[::-1])
    return np.pad(input, widths, mode=_OF_NUMPY[mode])


def _plane_gradient(g: Tensor, pairs: tuple[tuple[int, int], ...], mode: str) -> Tensor:
    """Each new element's gradient goes to the one that it repeats."""
    for k, (before, after) in enumerate(pairs):
        dim = g.dim() - 1 - k
        length = g.shape[dim] - before - after
        whole = g.narrow(dim, before, length)
        for count, at_end in ((before, False), (after, True)):
            if not count:
                continue
            part = g.narrow(dim, before + length if at_end else 0, count)
            if mode == "reflect":
                part, first = flip(part, dim), length - 1 - count if at_end else 1
            elif mode == "replicate":
                part, first = part.sum(dim, keepdim=True), length - 1 if at_end else 0
            else:
                first = 0 if at_end else length - count
            around = (first, length - first - part.shape[dim])
            whole = whole + _padded(part, (*(0, 0) * k, *around), "constant", None)
        g = whole
    return g


@op(
    public="pad",
    dtype=same,
    shape=_plane_shape,
    kernel=_plane_launch,
    reference=_plane_reference,
    grad={"input": _plane_gradient},
)
def pad_planes(input: Tensor, pairs: tuple[tuple[int, int], ...], mode: str) -> Tensor:
    """`nn.functional.pad` of the last axis or two by no negative number, in a mode but "constant"."""


@function()
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float | complex = 0) -> Tensor:
    """A constant at the ends of the last axes, or fewer elements where negative; see `nn.functional.pad`."""
    return _pad(input, pad, "constant", value)


_pad = pad
