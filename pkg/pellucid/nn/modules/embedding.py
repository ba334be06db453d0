"""A table of vectors, looked up by number."""

from __future__ import annotations

from ...errors import DimensionError, ShapeError
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import functional, init
from ..parameter import Parameter
from .module import Module


class Embedding(Module):
    """``out[..., :] = weight[input[...], :]``.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: its columns.
        padding_idx: a row that starts as zeros and gets no gradient; negative ones count from the end.
        device, dtype: of the table; the defaults if None.

    Attributes:
        weight: (num_embeddings, embedding_dim), standard normal; float or quantized.

    Raises:
        DimensionError: ``padding_idx`` is not a row.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Embedding.html

    Example:
        >>> import pellucid as torch
        >>> table = torch.nn.Embedding(10, 4, device="cpu")
        >>> table(torch.tensor([1, 2, 3], device="cpu")).shape
        Size([3, 4])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings = index(num_embeddings, "Embedding: num_embeddings")
        self.embedding_dim = embedding_dim = index(embedding_dim, "Embedding: embedding_dim")
        self.padding_idx = _row(padding_idx, num_embeddings)
        self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].zero_()

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """A layer over a table that exists.

        Args:
            embeddings: (rows, columns).
            freeze: whether the table gets no gradients.
            padding_idx: as in the class.

        Raises:
            ShapeError: the table is not a matrix.
        """
        if embeddings.dim() != 2:
            raise ShapeError(
                f"Embedding: the table has shape {tuple(embeddings.shape)}; it must be (rows, columns)."
            )
        out = cls.__new__(cls)
        Module.__init__(out)
        out.num_embeddings, out.embedding_dim = embeddings.shape
        out.padding_idx = _row(padding_idx, out.num_embeddings)
        out.weight = Parameter(embeddings, requires_grad=not freeze)
        return out

    def forward(self, input: Tensor) -> Tensor:
        return functional.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _row(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    padding_idx = index(padding_idx, "Embedding: padding_idx")
    if not -rows <= padding_idx < rows:
        raise DimensionError(f"Embedding: padding_idx {padding_idx} is not one of the {rows} rows.")
    return padding_idx % rows


__all__ = ["Embedding"]
