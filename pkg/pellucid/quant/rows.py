"""A weight in several buffers: what stands in the place of its storage, how ops see it, and how it moves."""

from __future__ import annotations

from math import prod

from ..device import device as Device
from ..device import resolved
from ..device.cpu import CpuStorage
from ..device.stream import stream
from ..errors import GradientError
from ..tensors.dtypes import uint32
from ..tensors.meta import meta
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


def as_matrix(weight: Tensor) -> Tensor:
    """A quantized weight of more axes as the matrix that it lies as: the first axis, and all others."""
    m = weight._meta
    flat = meta((m.shape[0], prod(m.shape[1:])), m.dtype, m.device)
    return Tensor(weight._storage, flat, weight._offset)


def moved(weight: Tensor, device) -> Tensor:
    """A quantized weight on another device; waits when it comes from the GPU."""
    where = resolved(device)
    if where is weight.device:
        return weight
    chunks = [_moved(chunk, where) for chunk in row_chunks(weight)]
    if len(chunks) == 1:
        return chunks[0]
    return Tensor(RowStorage(chunks), meta(weight.shape, weight.dtype, where), 0)


def _moved(chunk: Tensor, where: Device) -> Tensor:
    m = meta(chunk.shape, chunk.dtype, where)
    if where.type == "webgpu":
        return Tensor(stream().upload(chunk._storage.data, "weight"), m, 0)
    words = Tensor(chunk._storage, meta((chunk._storage.nbytes // 4,), uint32, chunk.device), 0)
    return Tensor(CpuStorage(words.numpy(), "weight"), m, 0)
