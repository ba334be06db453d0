"""Samplers: in which order a loader takes the examples of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from ...errors import ArgumentError, RangeError
from ...ops.random.distributions import rand, randint, randperm
from ...ops.random.generator import Generator

T_co = TypeVar("T_co", covariant=True)


def permutation(n: int, generator: Generator | None) -> list[int]:
    """The numbers below n in a random order. Seeds give other orders than PyTorch's."""
    return randperm(n, generator=generator, device="cpu").tolist()


class Sampler(Generic[T_co]):
    """An order: a subclass defines ``__iter__``, and ``__len__`` where it is known.

    Args:
        data_source: not used, as in PyTorch.
    """

    def __init__(self, data_source: Sized | None = None):
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: define __iter__().")


class SequentialSampler(Sampler[int]):
    """From the first example to the last.

    Args:
        data_source: what has a length.
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """In a random order, anew for each pass.

    Args:
        data_source: what has a length.
        replacement: draw each example independently of the others.
        num_samples: how many; the length if None.
        generator: the default one if None.

    Raises:
        ArgumentError, RangeError: as PyTorch.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        if not isinstance(replacement, bool):
            raise ArgumentError(f"RandomSampler: replacement must be True or False, not {replacement!r}.")
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise RangeError(f"RandomSampler: num_samples must be a positive integer, not {num_samples!r}.")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many examples a pass takes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        if self.replacement:
            drawn = randint(0, n, (self.num_samples,), generator=self.generator, device="cpu")
            yield from drawn.tolist()
            return
        left = self.num_samples
        while left > 0:
            yield from permutation(n, self.generator)[:left]
            left -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some examples, in a random order.

    Args:
        indices: which ones.
        generator: the default one if None.
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for k in permutation(len(self.indices), self.generator):
            yield self.indices[k]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Examples drawn with probabilities.

    Args:
        weights: not negative; they need not add up to 1.
        num_samples: how many.
        replacement: whether an example may come again.
        generator: the default one if None.

    Raises:
        RangeError: ``num_samples`` is not positive, or more than what can be drawn; ``weights`` are nested,
            negative, not finite, or all 0.
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise RangeError(
                f"WeightedRandomSampler: num_samples must be a positive integer, not {num_samples!r}."
            )
        values = weights.tolist() if hasattr(weights, "tolist") else list(weights)
        self.weights = np.asarray(values, np.float64)
        if self.weights.ndim != 1:
            raise RangeError(f"WeightedRandomSampler: weights have shape {self.weights.shape}. Give a list.")
        if not (self.weights >= 0).all() or not 0 < self.weights.sum() < np.inf:
            raise RangeError("WeightedRandomSampler: weights must be finite, not negative, and not all 0.")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise RangeError(
                f"WeightedRandomSampler: {num_samples} different examples of "
                f"{np.count_nonzero(self.weights)} with a weight above 0. Ask for fewer."
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        if self.replacement:
            ends = np.cumsum(self.weights)
            drawn = rand(self.num_samples, generator=self.generator, device="cpu").numpy() * ends[-1]
            yield from np.searchsorted(ends, drawn, side="right").clip(0, len(ends) - 1).tolist()
            return
        # The first arrivals of processes whose rates are the weights.
        with np.errstate(divide="ignore"):
            uniform = rand(len(self.weights), generator=self.generator, device="cpu").numpy()
            arrivals = -np.log1p(-uniform.astype(np.float64)) / self.weights
        arrivals[self.weights == 0] = np.inf
        yield from np.argsort(arrivals)[: self.num_samples].tolist()

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler[int]):
    """The share of one process, where several go through a dataset together.

    Args:
        dataset: what has a length.
        num_replicas: how many processes; 1 if None, for a page or a program is one here.
        rank: which of them this is; 0 if None.
        shuffle: mix the examples, by ``seed`` and the number that `set_epoch` sets.
        seed: the same in all processes.
        drop_last: leave out the last examples where the shares would not be equal; else the first come again.

    Raises:
        RangeError: ``rank`` is none of ``num_replicas``.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler

    Example:
        >>> from pellucid.utils.data import DistributedSampler
        >>> list(DistributedSampler("abcde", num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        self.num_replicas = 1 if num_replicas is None else num_replicas
        self.rank = 0 if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise RangeError(
                f"DistributedSampler: rank {rank} is none of {num_replicas} processes. Count from 0."
            )
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = (
            dataset,
            shuffle,
            seed,
            drop_last,
            0,
        )
        rounded = len(dataset) - len(dataset) % self.num_replicas
        self.num_samples = -(-(rounded if drop_last else len(dataset)) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            order = permutation(len(order), Generator("cpu").manual_seed(self.seed + self.epoch))
        return iter([order[k % len(order)] for k in range(self.rank, self.total_size, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Mix the examples in another way from now on."""
        self.epoch = epoch


class BatchSampler(Sampler[list[int]]):
    """Lists of what another sampler gives.

    Args:
        sampler: the other one.
        batch_size: how many make a list.
        drop_last: leave out a last list that is shorter.

    Raises:
        RangeError, ArgumentError: as PyTorch.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise RangeError(f"BatchSampler: batch_size must be a positive integer, not {batch_size!r}.")
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"BatchSampler: drop_last must be True or False, not {drop_last!r}.")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        rest = iter(self.sampler)
        while batch := list(islice(rest, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        length = len(self.sampler)  # type: ignore[arg-type]
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)
