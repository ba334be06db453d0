"""What a file of weights holds, known from its header alone: names, shapes, dtypes and places of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from ..errors import FormatError, WeightError
from .fields import shown
from .source import Source

MOST_DIMENSIONS = 64


class TensorInfo(NamedTuple):
    """One tensor of a checkpoint.

    Attributes:
        name: as the file spells it.
        shape: as PyTorch has it, slowest axis first.
        dtype: a name such as ``"float32"``, ``"bfloat16"`` or, for a quantized format, ``"q4_1"``.
        start: first byte in the shard.
        stop: one past the last byte.
        shard: which of the checkpoint's ``shards`` holds it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    stop: int
    shard: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes in the file."""
        return self.stop - self.start

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)


class Checkpoint(Mapping[str, TensorInfo]):
    """The tensors of one model's files, by name, in the files' order. Made by `pellucid.weights.open`.

    Attributes:
        name: where it came from.
        format: ``"gguf"`` or ``"safetensors"``.
        metadata: what the header says besides; all of a GGUF's keys, the strings of a safetensors.
        shards: the files.
        pairs: of a GGUF, the bytes of its keys and values as the file has them.
    """

    def __init__(
        self,
        name: str,
        format: str,
        tensors: list[TensorInfo],
        metadata: dict[str, Any],
        shards: list[Source],
        pairs: bytes = b"",
    ):
        self.name, self.format, self.metadata, self.shards = name, format, metadata, shards
        self.pairs = pairs
        self._tensors = {t.name: t for t in tensors}

    def __getitem__(self, name: str) -> TensorInfo:
        try:
            return self._tensors[name]
        except KeyError:
            raise WeightError(
                f"{self.name}: has no tensor {shown(name)}. print(checkpoint) lists the {len(self)} that "
                "it has."
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors: what loading them as they are will take."""
        return sum(t.nbytes for t in self._tensors.values())

    @property
    def numel(self) -> int:
        """Number of elements of all tensors."""
        return sum(t.numel for t in self._tensors.values())

    def close(self) -> None:
        """Give up connections that are still open."""
        for source in self.shards:
            source.close()

    def __repr__(self) -> str:
        return f"<Checkpoint {self.name}: {self.format}, {self._summary()}>"

    def _summary(self) -> str:
        return f"{len(self)} tensors, {self.numel:,} parameters, {self.nbytes:,} bytes"

    def __str__(self) -> str:
        rows = [("name", "shape", "dtype", "bytes")]
        for t in self._tensors.values():
            rows.append((t.name, "x".join(map(str, t.shape)) or "scalar", t.dtype, f"{t.nbytes:,}"))
        width = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [f"{a:<{width[0]}}  {b:<{width[1]}}  {c:<{width[2]}}  {d:>{width[3]}}" for a, b, c, d in rows]
        files = f"{len(self.shards)} file{'s' if len(self.shards) > 1 else ''}"
        return "\n".join([*lines, f"{self._summary()} in {files} ({self.format})"])


def check_layout(where: str, tensors: list[TensorInfo], begin: int, end: int, gaps: bool) -> None:
    """Refuse tensors outside ``begin`` to ``end`` or on each other and, unless ``gaps``, bytes of no tensor.

    Raises:
        FormatError: naming the first tensor that does not fit.
    """
    at, before = begin, "the header"
    for t in sorted((t for t in tensors), key=lambda t: (t.start, t.stop)):
        if t.stop > end:
            raise FormatError(
                f"{where}: tensor {shown(t.name)} occupies bytes {t.start:,} to {t.stop:,} but the file has "
                f"{end:,}. It is cut short or damaged; download it again."
            )
        if t.start < at:
            raise FormatError(
                f"{where}: tensor {shown(t.name)} begins at byte {t.start:,}, inside {before}, which ends at "
                f"{at:,}. The file is damaged."
            )
        if t.start > at and not gaps:
            raise FormatError(
                f"{where}: bytes {at:,} to {t.start:,} belong to no tensor, which this format does not "
                "allow. The file is damaged."
            )
        if t.stop > t.start:
            at, before = t.stop, f"tensor {shown(t.name)}"
    if at < end and not gaps:
        raise FormatError(
            f"{where}: bytes {at:,} to {end:,} belong to no tensor, which this format does not allow. The "
            "file is damaged."
        )


def check_name(where: str, raw: bytes | str, longest: int) -> str:
    """A tensor's or key's name as text.

    Raises:
        FormatError: it is empty, too long or not UTF-8.
    """
    try:
        name = raw if isinstance(raw, str) else raw.decode()
        encoded = name.encode()
    except UnicodeError:
        raise FormatError(f"{where}: a name is not UTF-8: {raw[:40]!r}. The file is damaged.") from None
    if not 0 < len(encoded) <= longest:
        raise FormatError(
            f"{where}: a name has {len(encoded):,} bytes: {name[:40]!r}; 1 to {longest:,} are allowed. The "
            "file is damaged."
        )
    return name
