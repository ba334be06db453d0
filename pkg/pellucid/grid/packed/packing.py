"""Packed tensors: numbers of any kind as bits in bytes, with their scales; fake quantization of the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...autograd.batching import is_batched, loop
from ...autograd.composed import composed
from ...autograd.grad_mode import no_grad
from ...errors import DTypeError, FormatError, RangeError
from ...ops.elementwise.comparison import where
from ...ops.shape.joining import cat
from ...tensors import dtypes
from ...tensors.construct import tensor
from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor
from .numbers import PRECISIONS, Precision, precision

# Scales are at least the smallest normal number of float32: GPUs may take what is below for zero.
_LEAST = 2.0**-126
_SCALES = PRECISIONS["float8_e4m3fn"]
PARTS = ("data", "scales", "lows", "factor")


@dataclass(frozen=True)
class PackedTensor:
    """A tensor as packed bits. ``x = low + scale * factor * number``, where a kind has these.

    Args:
        precision: the kind of its numbers.
        shape: of the tensor.
        group: which numbers share a scale: "tensor", "channel" (an index of the first axis), or how many
            neighbours.
        data: uint8 bytes; several numbers of a byte begin with its low bits.
        scales: float32, one a group, or uint8 codes of float8_e4m3fn; None for floats of 16 bits and more.
        lows: float32, the least number of each group, of unsigned integers.
        factor: float32, one number, by which scales of 8 bits are multiplied.
    """

    precision: Precision
    shape: tuple[int, ...]
    group: str | int
    data: Tensor
    scales: Tensor | None = None
    lows: Tensor | None = None
    factor: Tensor | None = None

    @property
    def parts(self) -> dict[str, Tensor]:
        """The tensors that there are, by name."""
        return {n: t for n in PARTS if (t := getattr(self, n)) is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers and of their scales."""
        return sum(part.numel() * part.element_size() for part in self.parts.values())

    def unpack(self) -> Tensor:
        """The tensor, float32."""
        with no_grad():
            count = math.prod(self.shape)
            values = _values_of(self.precision, self.data, count)
            if self.scales is None:
                return values.reshape(self.shape)
            grouped = _grouped(values, self.shape, self.group) * _scales_of(self.scales, self.factor)
            if self.lows is not None:
                grouped = grouped + self.lows.unsqueeze(-1)
            return grouped.reshape(-1)[:count].reshape(self.shape)

    def to(self, device: Any) -> PackedTensor:
        """The same on another device."""
        moved = {name: part.to(device) for name, part in self.parts.items()}
        return PackedTensor(self.precision, self.shape, self.group, **moved)


def pack(
    input: Tensor, dtype: str | DType | Precision, group: str | int = "tensor", scale_dtype: str | None = None
) -> PackedTensor:
    """A tensor in any of the 21 kinds of numbers, as packed bits.

    Each number becomes the nearest one that the kind holds as a multiple of its group's scale:

    - small floats and signed integers: the least scale by which no number is beyond the range;
    - unsigned integers: in equal steps from the group's least number (or 0) to its largest (or 0);
    - ternary: the mean size of the numbers above 0.7 times their mean size; binary: the mean size;
    - floats of 16 bits and more have no scale; float16 becomes infinite beyond 65504.

    Scales have 16 significant bits, those of integers of 16 bits and more are powers of two. So, but for
    rare ties of uint16 and of scales of 8 bits, packing what was unpacked gives the same bytes. A number that
    is not finite makes its whole group NaN, where there are scales.

    Args:
        input: any shape, float32.
        dtype: the kind, for `precision`.
        group: which numbers share a scale: "tensor", "channel" (an index of the first axis), or a number of
            neighbours in memory's order; the last group may be shorter.
        scale_dtype: "float8_e4m3fn" stores scales in 8 bits, times one factor: with float4_e2m1fn in groups
            of 16 this is NVFP4. float32 if None.

    Raises:
        DTypeError: input is not float32, or there is no such kind.
        RangeError: group or scale_dtype is none of these.

    Source: Li and Liu 2016, "Ternary Weight Networks"; Rastegari et al. 2016, "XNOR-Net"; NVIDIA 2025,
        "Pretraining Large Language Models with NVFP4"

    Example:
        >>> import pellucid
        >>> packed = pellucid.grid.pack(pellucid.tensor([7.0, -4.0, 2.3, -8.0], device="cpu"), "int4")
        >>> packed.data.tolist(), packed.unpack().tolist()
        ([199, 130], [7.0, -4.0, 2.0, -8.0])
    """
    p = precision(dtype)
    if not isinstance(input, Tensor) or input.dtype is not dtypes.float32:
        what = input.dtype if isinstance(input, Tensor) else type(input).__name__
        raise DTypeError(f"pack: input must be a float32 tensor, not {what}. Convert it with .float().")
    check_group(group, scale_dtype)
    with no_grad():
        shape, flat = tuple(input.shape), input.detach().contiguous().reshape(-1)
        if not p.is_scaled or not flat.numel():
            return PackedTensor(p, shape, group, packed_bytes(p, p.encode(flat)))
        grouped = _grouped(flat, shape, group)
        scales, lows = _fitted(p, grouped, flat.numel())
        factor = None
        if scale_dtype is not None:
            factor = _rounded(scales.amax() / _SCALES.largest).clamp(min=_LEAST).reshape(1)
            scales = _SCALES.encode(scales / factor).to(dtypes.uint8)
        scale = _scales_of(scales, factor)
        numbers = (grouped if lows is None else grouped - lows.unsqueeze(-1)) / scale.clamp(min=_LEAST)
        codes = p.encode(numbers.reshape(-1)[: flat.numel()])
        return PackedTensor(p, shape, group, packed_bytes(p, codes), scales, lows, factor)


def unpack(packed: PackedTensor) -> Tensor:
    """The float32 tensor of packed bits.

    Args:
        packed: from `pack`.

    Example:
        >>> import pellucid
        >>> x = pellucid.tensor([0.5, -0.5], device="cpu")
        >>> pellucid.grid.unpack(pellucid.grid.pack(x, "binary")).tolist()
        [0.5, -0.5]
    """
    return packed.unpack()


@composed(input=lambda g: g)
def fake_quantize(
    input: Tensor, dtype: str | DType | Precision, group: str | int = "tensor", scale_dtype: str | None = None
) -> Tensor:
    """``unpack(pack(input))``, with the gradient of the identity (straight-through estimator).

    Args:
        input: any shape, float32.
        dtype, group, scale_dtype: as in `pack`.

    Returns:
        float32, of the input's shape.

    Raises:
        DTypeError, RangeError: as `pack`.

    Source: Bengio, Leonard and Courville 2013, "Estimating or Propagating Gradients Through Stochastic
        Neurons"

    Example:
        >>> import pellucid
        >>> x = pellucid.tensor([1.0, -0.4], device="cpu", requires_grad=True)
        >>> pellucid.grid.fake_quantize(x, "ternary").sum().backward()
        >>> x.grad.tolist()
        [1.0, 1.0]
    """
    if is_batched(input):
        return loop(fake_quantize, (input, dtype, group, scale_dtype), {})
    return pack(input, dtype, group, scale_dtype).unpack()


def check_group(group: Any, scale_dtype: Any = None) -> None:
    """Refuse what says of no number with which others it shares a scale."""
    if group not in ("tensor", "channel") and not (type(group) is int and group >= 1):
        raise RangeError(f"pack: group must be 'tensor', 'channel' or a positive integer, not {group!r}.")
    if scale_dtype is not None and precision(scale_dtype) is not _SCALES:
        raise RangeError(f"pack: scale_dtype must be float8_e4m3fn or None, not {scale_dtype!r}.")


def _grouped(flat: Tensor, shape: tuple[int, ...], group: str | int) -> Tensor:
    """(groups, numbers), the last group filled up with zeros."""
    if group == "channel" and shape:
        return flat.reshape(shape[0], -1)
    if not isinstance(group, int):
        return flat.reshape(1, -1)
    group = min(group, max(flat.numel(), 1))  # what a group has beyond the tensor takes no memory
    if missing := -flat.numel() % group:
        flat = cat([flat, flat.new_zeros(missing)])
    return flat.reshape(-1, group)


def _fitted(p: Precision, grouped: Tensor, count: int) -> tuple[Tensor, Tensor | None]:
    """The scale of each group, and its least number where that counts."""
    lows = None
    if p.kind == "unsigned":
        lows = grouped.amin(-1).clamp(max=0.0)
        found = (grouped.amax(-1).clamp(min=0.0) - lows) / p.largest
    elif p.kind in ("ternary", "binary"):
        size = grouped.abs()
        # The last group may be filled up with zeros, which do not count.
        counts = size.new_full((size.shape[0],), float(size.shape[1]))
        if size.numel() != count:
            counts[-1] = float(size.shape[1] - (size.numel() - count))
        found = size.sum(-1) / counts
        if p.kind == "ternary":
            kept = (size > 0.7 * found.unsqueeze(-1)) | size.isnan()
            found = where(kept, size, 0.0).sum(-1) / kept.float().sum(-1).clamp(min=1.0)
    elif p.kind == "signed" and p.bits <= 8:
        found = (grouped.amax(-1) / p.largest).maximum(grouped.amin(-1) / (-p.largest - 1))
    else:
        found = grouped.abs().amax(-1) / p.largest
    scales = _power_of_two(found) if p.bits > 8 else _rounded(found)
    return where(found == 0, 0.0, scales.clamp(min=_LEAST)), lows


def _rounded(scale: Tensor) -> Tensor:
    """With 16 significant bits."""
    bits = scale.view(dtypes.int32)
    return ((bits + ((bits >> 8 & 1) + 0x7F)) & ~0xFF).view(dtypes.float32)


def _power_of_two(scale: Tensor) -> Tensor:
    """The least power of two that is not less."""
    power = ((scale.view(dtypes.int32) + 0x7FFFFF) & 0x7F800000).view(dtypes.float32)
    return where(scale.isnan(), scale, power)


def _scales_of(scales: Tensor, factor: Tensor | None) -> Tensor:
    """(groups, 1), float32."""
    if factor is not None:
        scales = _SCALES.decode(scales.int()) * factor
    return scales.unsqueeze(-1)


def scales_of(packed: PackedTensor) -> Tensor:
    """The scale of each group, float32, of a kind that has scales."""
    assert packed.scales is not None
    return _scales_of(packed.scales, packed.factor).squeeze(-1)


def packed_bytes(p: Precision, codes: Tensor) -> Tensor:
    """A vector of codes as bytes, several to a byte; those of more than 8 bits are bytes already."""
    if p.bits > 8:
        return codes
    if p.bits == 8:
        return codes.to(dtypes.uint8)
    each = 8 // p.bits
    if missing := -codes.numel() % each:
        codes = cat([codes, codes.new_zeros(missing)])
    return (codes.reshape(-1, each) << _places(p, codes.device)).sum(-1).to(dtypes.uint8)


def codes_of(packed: PackedTensor) -> Tensor:
    """A vector of codes, int32, of a kind of up to 8 bits."""
    return _codes_of(packed.precision, packed.data, math.prod(packed.shape))


def _codes_of(p: Precision, data: Tensor, count: int) -> Tensor:
    if p.bits == 8:
        return data.int()
    codes = (data.int().unsqueeze(-1) >> _places(p, data.device)) & ((1 << p.bits) - 1)
    return codes.reshape(-1)[:count]


def _values_of(p: Precision, data: Tensor, count: int) -> Tensor:
    return p.decode(_codes_of(p, data, count) if p.bits <= 8 else data)


def _places(p: Precision, device: Any) -> Tensor:
    """Where in a byte the bits of each number begin."""
    return tensor(list(range(0, 8, p.bits)), dtype=dtypes.int32, device=device)


def packed_from(fields: dict[str, Any], parts: dict[str, Tensor], where: str) -> PackedTensor:
    """Packed bits from what a file says of them; refused where sizes do not agree.

    Args:
        fields: `dtype`, `shape` and `group`.
        parts: tensors by name, as `PackedTensor.parts` gives them.
        where: what is read, for errors.

    Raises:
        FormatError: a field or a part is missing, of another kind, or of another size.
    """
    shape, group = fields.get("shape"), fields.get("group", "tensor")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise FormatError(f"{where}: shape must be a list of lengths, not {shape!r}.")
    try:
        p = precision(fields.get("dtype", ""))
        check_group(group)
    except (DTypeError, RangeError) as error:
        raise FormatError(f"{where}: {error}") from error
    count = math.prod(shape)
    groups = 0 if not (p.is_scaled and count) else (
        1 if group == "tensor" or not shape else shape[0] if group == "channel" else -(-count // group)
    )  # fmt: skip
    wanted = {"data": (dtypes.uint8, -(-count * p.bits // 8))}
    if groups:
        small = "factor" in parts
        wanted["scales"] = (dtypes.uint8 if small else dtypes.float32, groups)
        wanted |= {"factor": (dtypes.float32, 1)} if small else {}
        wanted |= {"lows": (dtypes.float32, groups)} if p.kind == "unsigned" else {}
    given = {name: (part.dtype, part.numel()) for name, part in parts.items()}
    if given != wanted:
        raise FormatError(f"{where}: {p.name} of shape {shape} has the parts {wanted}, not {given}.")
    return PackedTensor(p, tuple(shape), group, **{name: part.reshape(-1) for name, part in parts.items()})


__all__ = ["PackedTensor", "fake_quantize", "pack", "packed_from", "unpack"]
