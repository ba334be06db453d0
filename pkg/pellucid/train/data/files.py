"""Examples from files: text, JSONL, CSV and TSV, and folders of images."""

from __future__ import annotations

import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, FormatError, SourceError
from ...tensors.construct import tensor
from ...utils.data.dataset import Dataset, IterableDataset
from ...weights.document import as_bytes, parse_value

_DEEPEST = 128  # levels of lists and objects in a line
_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".npy", ".png", ".webp")


def _paths(files: Any) -> list[Path]:
    several = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    paths = [Path(f) for f in several]
    for path in paths:
        if not path.is_file():
            raise SourceError(f"{path}: there is no such file.")
    return paths


class _Lines(IterableDataset, ABC):
    """Examples of files that are read as they are asked for, anew at each pass.

    Args:
        files: a path or several.
        encoding: of the text.
    """

    def __init__(self, files: Any, encoding: str = "utf-8"):
        self.paths, self.encoding = _paths(files), encoding

    def __iter__(self) -> Iterator[Any]:
        for path in self.paths:
            try:
                with path.open(encoding=self.encoding, newline="") as file:
                    yield from self.examples(path, file)
            except UnicodeDecodeError as error:
                raise FormatError(
                    f"{path}: is no {self.encoding} text at byte {error.start}. Give encoding=."
                ) from None

    @abstractmethod
    def examples(self, path: Path, file: Any) -> Iterator[dict[str, Any]]:
        """The examples of a file that is open."""

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} is read as a stream; list(...) has a length")

    def list(self) -> list[dict[str, Any]]:
        """All examples, in memory: a dataset with a length, which is shuffled anew at each epoch."""
        return [*self]


class TextFiles(_Lines):
    """Lines or paragraphs of text files, as ``{"text": ...}``.

    Args:
        files: a path or several.
        by: "line", "paragraph" (parts between empty lines), or "document" (a whole file).
        encoding: of the text.

    Raises:
        ArgumentError: ``by`` is none of these.
        SourceError: a file is not there.
        FormatError: while it is read: it is no text of that encoding.

    Example:
        >>> import os, tempfile
        >>> from pellucid.train import TextFiles
        >>> path = os.path.join(tempfile.mkdtemp(), "a.txt")
        >>> _ = open(path, "w").write("One.\\n\\nTwo,\\nthree.\\n")
        >>> [example["text"] for example in TextFiles(path, by="paragraph")]
        ['One.', 'Two,\\nthree.']
    """

    def __init__(self, files: Any, by: str = "line", encoding: str = "utf-8"):
        super().__init__(files, encoding)
        if by not in ("line", "paragraph", "document"):
            raise ArgumentError(f"TextFiles: by must be 'line', 'paragraph' or 'document', not {by!r}.")
        self.by = by

    def examples(self, path: Path, file: Any) -> Iterator[dict[str, Any]]:
        if self.by == "document":
            yield {"text": file.read()}
            return
        held: list[str] = []
        for line in file:
            line = line.rstrip("\r\n")
            if self.by == "line":
                if line:
                    yield {"text": line}
            elif line.strip():
                held.append(line)
            elif held:
                yield {"text": "\n".join(held)}
                held = []
        if held:
            yield {"text": "\n".join(held)}


class JsonLines(_Lines):
    """Objects of JSONL files, one in a line.

    Args:
        files: a path or several.
        encoding: of the text.

    Raises:
        SourceError: a file is not there.
        FormatError: while it is read: a line is no JSON object, or nests deeper than 128 levels; names it by
            number.
    """

    def examples(self, path: Path, file: Any) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            found = parse_value(f"{path}, line {number}", as_bytes(line), deepest=_DEEPEST, most=None)
            if not isinstance(found, dict):
                raise FormatError(f"{path}, line {number}: is no JSON object, but {line.strip()[:60]}.")
            yield found


class CsvFiles(_Lines):
    """Rows of CSV files by the names in their first line.

    Args:
        files: a path or several.
        delimiter: between columns; "\\t" for TSV.
        types: functions by column, such as ``{"label": int}``; other columns stay text.
        encoding: of the text.

    Raises:
        SourceError: a file is not there.
        FormatError: while it is read: a row has other columns, or a value is not of its type.
    """

    def __init__(
        self,
        files: Any,
        delimiter: str = ",",
        types: dict[str, Callable[[str], Any]] | None = None,
        encoding: str = "utf-8",
    ):
        super().__init__(files, encoding)
        self.delimiter, self.types = delimiter, types or {}

    def examples(self, path: Path, file: Any) -> Iterator[dict[str, Any]]:
        reader = csv.DictReader(file, delimiter=self.delimiter)
        names = reader.fieldnames or []
        if missing := sorted(set(self.types) - set(names)):
            raise FormatError(f"{path}: has no column {', '.join(missing)}; it has {', '.join(names)}.")
        for row in reader:
            if None in row or None in row.values():
                where = f"{path}, line {reader.line_num}"
                raise FormatError(f"{where}: has other columns than the {len(names)} of the first line.")
            for name, make in self.types.items():
                try:
                    row[name] = make(row[name])
                except (TypeError, ValueError):
                    raise FormatError(
                        f"{path}, line {reader.line_num}: {name} is {row[name]!r}, which is no "
                        f"{getattr(make, '__name__', make)}."
                    ) from None
            yield row


class ImageFolder(Dataset):
    """Images in a folder for each class, as ``{"pixel_values": (3, height, width), "labels": number}``.

    Values lie between 0 and 1. Files of numpy (``.npy``, (height, width, 3) or (height, width) of uint8) are
    read without a library, others by Pillow.

    Args:
        root: the folder; classes are its folders in the order of their names.
        transform: of an array (height, width, 3) of uint8; gives what becomes the example's ``pixel_values``.

    Attributes:
        classes: names of the folders.

    Raises:
        SourceError: there are no images.
        FormatError: from an example: the file is no image.

    Source: https://pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html
    """

    def __init__(self, root: str | os.PathLike, transform: Callable[[np.ndarray], Any] | None = None):
        folder = Path(root)
        self.classes = sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
        self.transform = transform
        self.samples = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted((folder / name).rglob("*"))
            if path.suffix.lower() in _IMAGES
        ]
        if not self.samples:
            raise SourceError(
                f"{folder}: has no folder with images ({', '.join(_IMAGES)}). Each class is a folder."
            )

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> dict[str, Any]:
        path, label = self.samples[index]
        pixels = _pixels(path)
        if self.transform is not None:
            values = self.transform(pixels)
        else:
            values = tensor(np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32) / 255)
        return {"pixel_values": values, "labels": label}


def _pixels(path: Path) -> np.ndarray:
    if path.suffix.lower() == ".npy":
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise FormatError(f"{path}: is no array of numpy: {error}.") from None
        if array.dtype != np.uint8 or array.ndim not in (2, 3):
            raise FormatError(
                f"{path}: has {array.dtype} of shape {array.shape}; an image is uint8 of (height, width, 3)."
            )
        return np.repeat(array[..., None], 3, 2) if array.ndim == 2 else array
    try:
        pillow: Any = import_module("PIL.Image")
    except ImportError:
        raise SourceError(f"{path}: needs Pillow. Install it, or give .npy files.") from None
    try:
        with pillow.open(path) as image:
            return np.asarray(image.convert("RGB"))
    except OSError:  # of Pillow's own errors, too
        raise FormatError(f"{path}: is no image that Pillow reads.") from None


__all__ = ["CsvFiles", "ImageFolder", "JsonLines", "TextFiles"]
