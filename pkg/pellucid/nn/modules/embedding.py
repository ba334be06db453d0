"""Tables of vectors, looked up by number: one by one, or bags of them together."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, RangeError, ShapeError
from ...op.arguments import boolean, number
from ...ops.index.embeddings import row_of
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import functional, init
from ..parameter import Parameter
from .module import Module

# The settings that a module shows where they are not these.
_USUAL = {
    "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "mode": None, "sparse": False,
    "include_last_offset": False, "padding_idx": None,
}  # fmt: skip


class _Table(Module):
    """A table of vectors with settings.

    Attributes:
        weight: (num_embeddings, embedding_dim), standard normal; float or quantized.
    """

    _shown: tuple[str, ...]
    padding_idx: int | None
    max_norm: float | None

    def __init__(
        self, rows: int, columns: int, weight: Tensor | None, freeze: bool, device, dtype, **settings
    ):
        super().__init__()
        name = type(self).__name__
        self.num_embeddings = rows = index(rows, f"{name}: num_embeddings")
        self.embedding_dim = columns = index(columns, f"{name}: embedding_dim")
        row = row_of(name, settings.pop("padding_idx"), rows)
        self.padding_idx = None if row < 0 else row
        for key in ("max_norm", "norm_type"):
            if settings[key] is not None:
                number(settings[key], f"{name}: {key}")
        if boolean(settings["sparse"], f"{name}: sparse"):
            raise RangeError(f"{name}: gradients are dense here. Leave out sparse=True.")
        for key, value in settings.items():
            setattr(self, key, value)
        if weight is None:
            self.weight = Parameter(empty(rows, columns, device=device, dtype=dtype), not freeze)
            self.reset_parameters()
            return
        if not isinstance(weight, Tensor):
            raise ArgumentError(f"{name}: _weight must be a Tensor, not {type(weight).__name__} {weight!r}")
        if tuple(weight.shape) != (rows, columns):
            raise ShapeError(f"{name}: the table has shape {tuple(weight.shape)}, not ({rows}, {columns}).")
        self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].zero_()

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, *args: Any, **settings: Any) -> Any:
        """A layer over a table that exists.

        Args:
            embeddings: (rows, columns).
            freeze: whether the table gets no gradients.
            args, settings: the settings of the class, from ``padding_idx`` or ``max_norm`` on.

        Raises:
            ShapeError: the table is not a matrix.
        """
        if embeddings.dim() != 2:
            raise ShapeError(
                f"{cls.__name__}: the table has shape {tuple(embeddings.shape)}; it must be (rows, columns)."
            )
        settings |= dict(zip(cls._pretrained, args, strict=False))
        layer: Any = cls
        made = layer(*embeddings.shape, _weight=embeddings, **settings)
        made.weight.requires_grad_(not freeze and made.weight.dtype.is_floating_point)
        return made

    _pretrained: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        shown = [(n, getattr(self, n)) for n in self._shown]
        more = [f"{n}={v!r}" for n, v in shown if v != _USUAL[n]]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *more])


class Embedding(_Table):
    """``out[..., :] = weight[input[...], :]``.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: its columns.
        padding_idx: a row that starts as zeros and gets no gradient; negative ones count from the end.
        max_norm, norm_type, scale_grad_by_freq, sparse: as `functional.embedding` has them.
        _weight: the table; drawn if None.
        _freeze: whether it gets no gradients.
        device, dtype: of the table; the defaults if None.

    Attributes:
        weight: (num_embeddings, embedding_dim), standard normal; float or quantized.

    Raises:
        DimensionError: ``padding_idx`` is not a row.

    Example:
        >>> import pellucid as torch
        >>> table = torch.nn.Embedding(10, 4, device="cpu")
        >>> table(torch.tensor([1, 2, 3], device="cpu")).shape
        Size([3, 4])
    """

    _shown = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    _pretrained = _shown
    norm_type: float
    scale_grad_by_freq: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__(
            num_embeddings, embedding_dim, _weight, _freeze, device, dtype, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        settings = self.max_norm, self.norm_type, self.scale_grad_by_freq
        return functional.embedding(input, self.weight, self.padding_idx, *settings)


class EmbeddingBag(_Table):
    """The sum, mean or largest of the rows of bags of indices; see `functional.embedding_bag`.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: its columns.
        max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx: as
            `functional.embedding_bag` has them.
        _weight: the table; drawn if None.
        device, dtype: of the table; the defaults if None.

    Attributes:
        weight: (num_embeddings, embedding_dim), standard normal.
    """

    _shown = ("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx")
    _pretrained = (
        "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse", "include_last_offset", "padding_idx",
    )  # fmt: skip
    norm_type: float
    scale_grad_by_freq: bool
    mode: str
    include_last_offset: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__(
            num_embeddings, embedding_dim, _weight, False, device, dtype, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
            mode=mode, include_last_offset=include_last_offset,
        )  # fmt: skip

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return functional.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
            False, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip


__all__ = ["Embedding", "EmbeddingBag"]
