"""Several tensors as one flat tensor and back, which PyTorch keeps in its private ``torch._utils``."""

from __future__ import annotations

from collections.abc import Sequence

from ...nn.utils import parameters_to_vector
from ...tensors.tensor import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of several tensors of one dtype, one after the other."""
    return parameters_to_vector(tensors)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor with the shapes of several."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors, strict=True))


__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]
