"""Frozen weights: packed bits that products and embeddings unpack inside their kernels, without a master."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from ...errors import ArgumentError
from ...nn.modules.embedding import Embedding
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...nn.utils.parametrize import remove_parametrizations
from ...ops.shape.joining import cat
from ...quant.format import UNIT
from ...quant.weight import weight_from_planes
from ...tensors import dtypes
from ...tensors.tensor import Tensor
from .packing import PackedTensor
from .polymorphic import polymorphic, seen_master


def freeze(module: Module, pattern: str = "*weight") -> list[str]:
    """Let layers keep nothing but the packed bits of their weights, for inference, and tell which do.

    Weights of `Linear` and `Embedding` that were morphed become weights whose kernels unpack them: int8,
    float8 and ternary with a scale for the tensor or a channel, float4 in groups of 16 with scales of 8 bits
    (NVFP4), float16 and bfloat16. The masters go, so these weights learn no more; inputs still have
    gradients. Weights of other layers and kinds stay as they are.

    Args:
        module: morphed before.
        pattern: of the names of weights.

    Returns:
        Names of the weights that are frozen now.

    Raises:
        ArgumentError: there is nothing to freeze.

    Example:
        >>> import pellucid
        >>> layer = pellucid.grid.morph(pellucid.nn.Linear(64, 2, device="cpu"), "ternary", "weight")
        >>> y = layer(pellucid.ones(1, 64, device="cpu"))
        >>> pellucid.grid.freeze(layer)
        ['weight']
        >>> bool((layer(pellucid.ones(1, 64, device="cpu")) - y).abs().max() < 1e-4)
        True
    """
    frozen = []
    for path, owner in list(module.named_modules()):
        seen = polymorphic(owner, "weight") if isinstance(owner, (Linear, Embedding)) else None
        name = f"{path}.weight" if path else "weight"
        if seen is None or not fnmatchcase(name, pattern):
            continue
        master = seen_master(owner, "weight")
        planes = PLANES.get(seen.active.name)
        if planes is None:
            continue
        found = planes(seen.version(master))
        if found is not None:
            format, parts = found
            weight = weight_from_planes(parts, format, (master.shape[0], master.shape[1]))
            remove_parametrizations(owner, "weight", leave_parametrized=False)
            owner.weight = Parameter(weight, requires_grad=False)
            frozen.append(name)
    if not frozen:
        raise ArgumentError(
            f"freeze: {type(module).__name__} has no weights of Linear or Embedding in a kind that kernels "
            f"unpack ({', '.join(PLANES)}). Call morph first; see the docs for the groups of scales."
        )
    return frozen


Found = tuple[str, list[Tensor]] | None


def _padded(codes: Tensor, filler: int) -> Tensor:
    """(rows, columns) filled up to whole units."""
    if missing := -codes.shape[1] % UNIT:
        codes = cat([codes, codes.new_full((codes.shape[0], missing), filler)], 1)
    return codes.contiguous()


def _row_scales(packed: PackedTensor) -> Tensor | None:
    """A scale for each row, if they are of rows or of the whole."""
    if packed.scales is None or packed.group not in ("tensor", "channel"):
        return None
    return packed.scales.expand(packed.shape[0]).contiguous()


def _int8(packed: PackedTensor) -> Found:
    scales = _row_scales(packed)
    return None if scales is None else ("int8_rows", [_padded(packed.data.reshape(packed.shape), 0), scales])


def _float8(format: str) -> Callable[[PackedTensor], Found]:
    def planes(packed: PackedTensor) -> Found:
        scales = _row_scales(packed)
        if scales is None:
            return None
        each = scales.unsqueeze(1).expand(-1, -(-packed.shape[1] // (4 * UNIT))).contiguous()
        return format, [_padded(packed.data.reshape(packed.shape), 0), each]

    return planes


def _ternary(packed: PackedTensor) -> Found:
    scales = _row_scales(packed)
    if scales is None:
        return None
    places = packed.data.new_tensor([0, 2, 4, 6]).int()
    codes = (packed.data.int().unsqueeze(-1) >> places & 3).reshape(-1)
    codes = codes[: packed.shape[0] * packed.shape[1]].reshape(packed.shape)
    # Kernels have -1, 0, 1 as 0, 1, 2.
    bits = _padded((codes + 1) & 3, 1).reshape(packed.shape[0], -1, 4)
    return "int2_rows", [(bits << places).sum(-1).to(dtypes.uint8), scales]


def _float4(packed: PackedTensor) -> Found:
    if packed.group != 16 or packed.factor is None or packed.scales is None or packed.shape[1] % UNIT:
        return None
    return "fp4_groups", [packed.data, packed.scales, packed.factor]


def _half(format: str) -> Callable[[PackedTensor], Found]:
    def planes(packed: PackedTensor) -> Found:
        words = packed.data.view(dtypes.int16).reshape(packed.shape)
        return format, [_padded(words, 0)]

    return planes


PLANES: dict[str, Callable[[PackedTensor], Found]] = {
    "int8": _int8,
    "float8_e4m3fn": _float8("fp8_e4m3"),
    "float8_e5m2": _float8("fp8_e5m2"),
    "ternary": _ternary,
    "float4_e2m1fn": _float4,
    "float16": _half("f16"),
    "bfloat16": _half("bf16"),
}
"""What makes planes of packed bits, by the kind of number; None where its scales are of other groups."""
