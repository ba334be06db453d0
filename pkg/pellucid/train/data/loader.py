"""Batches of a training run: their order follows from the seed and the epoch, so a run can go on anywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sized
from itertools import islice
from typing import Any

from ...errors import ArgumentError
from ...ops.random.generator import Generator
from ...utils.data.dataset import IterableDataset
from ...utils.data.loader import DataLoader
from ...utils.data.sampler import BatchSampler, Sampler, permutation


class EpochSampler(Sampler[int]):
    """A random order for each epoch, that follows from the seed and the epoch alone.

    Args:
        data_source: what has a length.
        seed: of the run.
    """

    def __init__(self, data_source: Sized, seed: int):
        self.data_source, self.seed, self.epoch = data_source, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order comes next."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        generator = Generator().manual_seed((self.seed + 0x9E3779B9 * self.epoch) & 0xFFFFFFFFFFFFFFFF)
        return iter(permutation(len(self.data_source), generator))

    def __len__(self) -> int:
        return len(self.data_source)


class _Stream(IterableDataset):
    """What can be iterated over anew, as a dataset.

    Args:
        source: it.
    """

    def __init__(self, source: Any):
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)


def as_dataset(source: Any) -> Any:
    """A dataset as loaders take it: with a length, or an `IterableDataset`.

    Raises:
        ArgumentError: it is neither, or an iterator, which ends after one pass.
    """
    if isinstance(source, IterableDataset) or (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
        return source
    if isinstance(source, Iterator):
        raise ArgumentError(
            "Trainer: a dataset must give its examples anew for each epoch, and an iterator ends after one "
            "pass. Give a list, or an object whose __iter__ begins anew."
        )
    if hasattr(source, "__iter__"):
        return _Stream(source)
    raise ArgumentError(f"Trainer: a dataset has examples by number or gives them in turn, not {source!r}.")


def used(model: Any, labels: tuple[str, ...], collate: Callable) -> Callable:
    """A collate function that leaves out what the model's forward has no name for.

    Args:
        model: whose ``forward``.
        labels: names that stay.
        collate: makes a batch of what is left.
    """
    parameters = inspect.signature(model.forward).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return collate
    known = {*parameters, *labels, "label", "label_ids"}

    def collated(examples: list[Any]) -> Any:
        if isinstance(examples[0], dict):
            examples = [{k: v for k, v in example.items() if k in known} for example in examples]
            if not examples[0]:
                raise ArgumentError(
                    f"Trainer: the examples have nothing that {type(model).__name__}.forward takes: "
                    f"{', '.join(parameters)}. Tokenize them, or set remove_unused_columns=False."
                )
        return collate(examples)

    return collated


def training_loader(dataset: Any, args: Any, collate: Callable) -> DataLoader:
    """The loader of a training run: in a random order, if the dataset has a length.

    Args:
        dataset: examples.
        args: a `TrainingArguments`.
        collate: makes a batch of examples.
    """
    dataset, size = as_dataset(dataset), args.per_device_train_batch_size
    if isinstance(dataset, IterableDataset):
        return DataLoader(dataset, size, collate_fn=collate, drop_last=args.dataloader_drop_last)
    sampler = EpochSampler(dataset, args.seed if args.data_seed is None else args.data_seed)
    order = BatchSampler(sampler, size, args.dataloader_drop_last)
    return DataLoader(dataset, batch_sampler=order, collate_fn=collate)


def length(loader: Any) -> int | None:
    """How many batches a loader has; None where nobody knows."""
    try:
        return len(loader)
    except TypeError:
        return None


def batches(loader: Any, epoch: int, skip: int) -> Iterator[Any]:
    """The batches of an epoch but for the first ones, which are not made where the order is known.

    Args:
        loader: a `DataLoader`, or anything that gives batches.
        epoch: which.
        skip: how many of the first.
    """
    order = getattr(loader, "batch_sampler", None)
    for owner in (loader, getattr(loader, "dataset", None), order, getattr(order, "sampler", None)):
        if (tell := getattr(owner, "set_epoch", None)) is not None:
            tell(epoch)
    if order is None or not skip:
        return islice(iter(loader), skip, None)
    dataset, fetch = loader.dataset, getattr(loader.dataset, "__getitems__", None)

    def rest() -> Iterator[Any]:
        for places in islice(iter(order), skip, None):
            yield loader.collate_fn(fetch(places) if fetch else [dataset[k] for k in places])

    return rest()


__all__ = ["EpochSampler", "as_dataset", "batches", "length", "training_loader", "used"]
