"""Datasets: examples by number, or one after the other."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from ...errors import ArgumentError, DimensionError, RangeError, ShapeError
from ...ops.random.generator import Generator
from ...tensors.tensor import Tensor
from .sampler import permutation

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Examples by number: a subclass defines ``__getitem__``, and ``__len__`` where samplers need it.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.Dataset
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__}: define __getitem__().")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Examples one after the other: a subclass defines ``__iter__``.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: example k is the tuple of their k-th rows.

    Args:
        tensors: with first axes of one length.

    Raises:
        ShapeError: the lengths differ.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.utils.data import TensorDataset
        >>> TensorDataset(torch.arange(4, device="cpu"))[1]
        (tensor(1, device='cpu'),)
    """

    def __init__(self, *tensors: Tensor):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise ShapeError(
                f"TensorDataset: first axes have lengths {[t.size(0) for t in tensors]}. Give tensors with "
                "as many rows each."
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Several datasets side by side: example k has the k-th example of each, as a tuple or a dict.

    Args:
        args: datasets of a tuple.
        kwargs: datasets of a dict.

    Raises:
        RangeError: there are both, or none.
        ShapeError: their lengths differ.
    """

    datasets: tuple | dict

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if bool(args) == bool(kwargs):
            raise RangeError("StackDataset: takes datasets either in order or by name, and at least one.")
        self.datasets = args or kwargs
        lengths = [len(d) for d in args or kwargs.values()]  # type: ignore[arg-type]
        if len(set(lengths)) > 1:
            raise ShapeError(f"StackDataset: lengths are {lengths}. Give datasets of one length.")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets behind each other.

    Args:
        datasets: with lengths.

    Raises:
        ArgumentError: there are none, or one of them is iterable only.
    """

    @staticmethod
    def cumsum(sequence: Iterable) -> list[int]:
        """Where each dataset ends."""
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ArgumentError(
                "ConcatDataset: takes at least one dataset, and none that is iterable only. Use ChainDataset."
            )
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        length = len(self)
        if not -length <= index < length:
            raise DimensionError(f"ConcatDataset: there are {length} examples, and index is {index}.")
        index %= length
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other.

    Args:
        datasets: iterable ones.
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset  # type: ignore[misc]

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)  # type: ignore[arg-type]


class Subset(Dataset[T_co]):
    """Some examples of a dataset.

    Args:
        dataset: all of them.
        indices: which ones, in order.
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset[T_co]]:
    """A dataset in random parts.

    Args:
        dataset: with a length.
        lengths: of the parts; or shares that add up to 1, whose remainder goes to the first parts in turn.
        generator: the default one if None.

    Raises:
        RangeError: the lengths do not add up.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.random_split

    Example:
        >>> from pellucid.utils.data import random_split
        >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
        [8, 2]
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise RangeError(f"random_split: shares must lie between 0 and 1, not {list(lengths)}.")
        sizes = [math.floor(total * share) for share in lengths]
        for k in range(total - sum(sizes)):
            sizes[k % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != total:
        raise RangeError(f"random_split: lengths {list(lengths)} do not add up to {total} examples.")
    order = permutation(total, generator)
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
