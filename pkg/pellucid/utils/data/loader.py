"""DataLoader: batches of a dataset, in the order of a sampler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from ...errors import ArgumentError, RangeError
from ...ops.random.generator import Generator
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler

T_co = TypeVar("T_co", covariant=True)

# What iterators are made of: another value later would be heard by none, or by a part.
_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


class DataLoader(Generic[T_co]):
    """Batches of a dataset, made in this process while they are asked for.

    Args:
        dataset: examples by number, or an `IterableDataset`.
        batch_size: examples of a batch; None gives single examples.
        shuffle: a random order, anew for each pass.
        sampler: the order, in place of ``shuffle``.
        batch_sampler: lists of numbers, in place of ``batch_size``, ``shuffle``, ``sampler``, ``drop_last``.
        num_workers: other processes; there are none, so what is above 0 warns and counts as 0.
        collate_fn: makes a batch of a list of examples; `default_collate` if None.
        pin_memory, pin_memory_device, in_order: without effect: no memory is locked, batches are in order.
        drop_last: leave out a last batch that is smaller.
        timeout, prefetch_factor, persistent_workers, multiprocessing_context: of workers, so without effect;
            they are checked as in PyTorch.
        worker_init_fn: not called, as in PyTorch without workers.
        generator: of random orders; the default one if None. Seeds give other orders than PyTorch's.

    Raises:
        RangeError, ArgumentError: arguments that exclude each other.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader

    Example:
        >>> import pellucid as torch
        >>> from pellucid.utils.data import DataLoader
        >>> with torch.device("cpu"):
        ...     [batch.tolist() for batch in DataLoader(range(5), batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        if num_workers < 0 or timeout < 0:
            raise RangeError("DataLoader: num_workers and timeout must not be negative.")
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
            raise RangeError("DataLoader: prefetch_factor and persistent_workers need num_workers > 0.")
        if num_workers > 0:
            warnings.warn(
                f"DataLoader: num_workers={num_workers} counts as 0: there are no other processes here, so "
                "batches are made in this one.",
                stacklevel=2,
            )
        is_iterable = isinstance(dataset, IterableDataset)
        if is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise RangeError(
                "DataLoader: an IterableDataset has an order of its own. Give no shuffle, sampler or "
                "batch_sampler."
            )
        if sampler is not None and shuffle:
            raise RangeError("DataLoader: sampler and shuffle exclude each other. Give one of them.")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise RangeError(
                "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last. Give it "
                "alone."
            )
        if batch_sampler is None and batch_size is None and drop_last:
            raise RangeError("DataLoader: drop_last needs a batch_size.")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
            raise RangeError(
                f"DataLoader: batch_size must be a positive integer or None, not {batch_size!r}."
            )
        if collate_fn is not None and not callable(collate_fn):
            raise ArgumentError(f"DataLoader: collate_fn must be a function, not {collate_fn!r}.")
        if sampler is None and not is_iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        is_batched = batch_size is not None or batch_sampler is not None
        self.dataset: Dataset[T_co] = dataset
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.collate_fn = collate_fn or (default_collate if is_batched else default_convert)
        self.num_workers, self.worker_init_fn, self.timeout = 0, worker_init_fn, timeout
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
        self.multiprocessing_context, self.in_order = multiprocessing_context, in_order

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "in_order" in vars(self):
            raise RangeError(f"DataLoader: {name} cannot be set afterwards. Make another loader.")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is not None:
            examples: Any = self.dataset
            fetch = getattr(examples, "__getitems__", None)
            for places in self.batch_sampler:
                yield self.collate_fn(fetch(places) if fetch else [examples[k] for k in places])
        elif self.sampler is not None:
            for k in self.sampler:
                yield self.collate_fn(self.dataset[k])  # type: ignore[arg-type]
        else:
            yield from self._of_iterable(iter(self.dataset))  # type: ignore[call-overload]

    def _of_iterable(self, examples: Iterator[Any]) -> Iterator[Any]:
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        while batch := list(islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        if self.sampler is not None:
            return len(self.sampler)  # type: ignore[arg-type]
        length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def get_worker_info() -> None:
    """None: there are no workers."""
