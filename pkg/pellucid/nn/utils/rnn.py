"""Sequences of different lengths as one tensor: padded, or packed without padding. PyTorch's
``torch.nn.utils.rnn``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, RangeError, ShapeError
from ...op.arguments import describe
from ...ops.recurrence.packing import packed, padded
from ...ops.shape.creation import full
from ...ops.shape.joining import cat, stack
from ...tensors import dtypes as dt
from ...tensors.absent import refuse_others
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor


class Packed(NamedTuple):
    """What a `PackedSequence` holds."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(Packed):
    """Sequences without padding: the first steps of all, then the second ones, and so on. `pack_sequence` and
    `pack_padded_sequence` make them.

    Args:
        data: (sum of lengths, *).
        batch_sizes: how many sequences have each step, int64 on the cpu.
        sorted_indices: which sequence of the batch lies at each place; None: they were sorted by length.
        unsorted_indices: the inverse; computed if None.

    Raises:
        RangeError: ``batch_sizes`` is not on the cpu.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.PackedSequence.html
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Named tuples are made here."""
        if batch_sizes is None:
            data, batch_sizes = data
        assert batch_sizes is not None
        if batch_sizes.device.type != "cpu":
            raise RangeError(
                f"PackedSequence: batch_sizes must be on the cpu, not {batch_sizes.device}. Let "
                "pack_sequence() make it."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences of another dtype or on another device; ``batch_sizes`` stays."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        order = [
            None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *order)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences on the cpu; further arguments are those of `to`."""
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Refused, as `Tensor.cuda`."""
        return type(self)(self.data.cuda(*args, **kwargs), self.batch_sizes)

    @property
    def is_cuda(self) -> bool:
        """False, as of every tensor here."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """False, as of every tensor here."""
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """Itself: transfers need no locked memory here."""
        return self

    def double(self) -> PackedSequence:
        """The same sequences as float64."""
        return self.to(dt.float64)

    def float(self) -> PackedSequence:
        """The same sequences as float32."""
        return self.to(dt.float32)

    def half(self) -> PackedSequence:
        """The same sequences as float16."""
        return self.to(dt.float16)

    def long(self) -> PackedSequence:
        """The same sequences as int64."""
        return self.to(dt.int64)

    def int(self) -> PackedSequence:
        """The same sequences as int32."""
        return self.to(dt.int32)

    def short(self) -> PackedSequence:
        """The same sequences as int16."""
        return self.to(dt.int16)

    def char(self) -> PackedSequence:
        """The same sequences as int8."""
        return self.to(dt.int8)

    def byte(self) -> PackedSequence:
        """The same sequences as uint8."""
        return self.to(dt.uint8)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes one; None of None.

    Args:
        permutation: (n,), int64.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.invert_permutation.html
    """
    return None if permutation is None else permutation.argsort()


def _numbers(where: str, lengths: Any) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    if not isinstance(values, (list, tuple)):
        raise ArgumentError(
            f"{where}: lengths must be a list or a tensor of one axis, not {describe(lengths)}."
        )
    return [int(n) for n in values]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Padded sequences without their padding.

    Args:
        input: (time, batch, *), with ``batch_first`` (batch, time, *).
        lengths: of each sequence, a list or a tensor.
        batch_first: see above.
        enforce_sorted: lengths must fall; else sequences are sorted here.

    Returns:
        A `PackedSequence`.

    Raises:
        RangeError: lengths are not sorted, not positive, or longer than the input.
        ShapeError: there are not as many as sequences.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html
    """
    where = "pack_padded_sequence"
    lengths = _numbers(where, lengths)
    x = input.transpose(0, 1) if batch_first else input
    if len(lengths) != x.shape[1]:
        raise ShapeError(f"{where}: {len(lengths)} lengths for {x.shape[1]} sequences. Give one for each.")
    if not lengths or min(lengths) <= 0 or max(lengths) > len(x):
        raise RangeError(f"{where}: lengths {lengths} must lie between 1 and {len(x)}.")
    order = None
    if not enforce_sorted:
        places = sorted(range(len(lengths)), key=lambda k: -lengths[k])
        lengths = [lengths[k] for k in places]
        order = tensor(places, dtype=dt.int64, device=input.device)
        x = x.index_select(1, order)
    elif lengths != sorted(lengths, reverse=True):
        raise RangeError(f"{where}: lengths {lengths} must fall. Sort them, or give enforce_sorted=False.")
    sizes = [sum(n > t for n in lengths) for t in range(lengths[0])]
    return PackedSequence(packed(x[: len(sizes)], sizes), tensor(sizes, dtype=dt.int64, device="cpu"), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Packed sequences with padding, in their first order.

    Args:
        sequence: a `PackedSequence`.
        batch_first: whether the result is (batch, time, *) instead of (time, batch, *).
        padding_value: where a sequence has no step.
        total_length: times of the result; as many as the longest sequence has if None.

    Returns:
        The padded tensor, and the lengths, int64 on the cpu.

    Raises:
        RangeError: ``total_length`` is less than the longest sequence.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_packed_sequence.html
    """
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise RangeError(
            f"pad_packed_sequence: total_length {total_length} is less than the longest sequence, "
            f"{len(sizes)}."
        )
    out = padded(sequence.data, sizes, padding_value, total_length)
    lengths = np.array([sum(size > k for size in sizes) for k in range(sizes[0])], np.int64)
    if sequence.unsorted_indices is not None:
        out = out.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.tolist()]
    return out.transpose(0, 1) if batch_first else out, tensor(lengths, device="cpu")


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of different lengths side by side, with padding.

    Args:
        sequences: each (length, *).
        batch_first: whether the result is (batch, time, *) instead of (time, batch, *).
        padding_value: where a sequence has no step.
        padding_side: "right" or "left".

    Returns:
        (time, batch, *) with as many times as the longest sequence.

    Raises:
        RangeError: there are none, or another side is asked for.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html

    Example:
        >>> import pellucid as torch
        >>> rows = [torch.ones(n, device="cpu") for n in (1, 3)]
        >>> torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).tolist()
        [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    rows = list(sequences)
    if not rows:
        raise RangeError("pad_sequence: there are no sequences.")
    if padding_side not in ("right", "left"):
        raise RangeError(f"pad_sequence: padding_side must be 'right' or 'left', not {padding_side!r}.")
    longest, whole = max(map(len, rows)), []
    for row in rows:
        rest = (longest - len(row), *row.shape[1:])
        blank = full(rest, padding_value, dtype=row.dtype, device=row.device)
        whole.append(cat([row, blank] if padding_side == "right" else [blank, row]) if rest[0] else row)
    return stack(whole, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each of its length.

    Args:
        padded_sequences: (time, batch, *), with ``batch_first`` (batch, time, *).
        lengths: of each sequence.
        batch_first: see above.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.unpad_sequence.html
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows.unbind(0), _numbers("unpad_sequence", lengths), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of different lengths without padding.

    Args:
        sequences: each (length, *).
        enforce_sorted: lengths must fall; else sequences are sorted here.

    Returns:
        A `PackedSequence`.

    Raises:
        RangeError: lengths are not sorted or not positive.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_sequence.html
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(s) for s in sequences], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed, in their first order.

    Args:
        packed_sequences: a `PackedSequence`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.rnn.unpack_sequence.html
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

refuse_others("torch.nn.utils.rnn", globals())
