"""A weight in several buffers: what stands in the place of its storage, and how ops see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import GradientError

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor


class RowStorage:
    """The buffers of a weight that is too large for one, in order, each a tensor of rows."""

    __slots__ = ("__weakref__", "chunks", "kind", "nbytes", "version")

    def __init__(self, chunks: list[Tensor]):
        self.chunks = chunks
        self.nbytes = sum(chunk._storage.nbytes for chunk in chunks)
        self.version = 0
        self.kind = "weight"


def row_chunks(weight: Tensor) -> list[Tensor]:
    """The tensors whose rows, one after another, are those of a quantized weight.

    Raises:
        GradientError: the weight requires grad, which no op on it can give.
    """
    if weight._node is not None:
        raise GradientError(
            f"a weight of {weight.dtype} has no gradient. Leave its requires_grad False, or train what "
            "dequantize() returns."
        )
    storage = weight._storage
    return storage.chunks if type(storage) is RowStorage else [weight]
