"""npz: arrays by name in a zip, written under any name."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from zipfile import ZipFile

import numpy as np


def save_npz(filename: str | PathLike, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write arrays as `numpy.savez` does, whose own arguments are no names there: it refuses an array called
    ``file``, and leaves out ``allow_pickle`` without a word.

    Args:
        filename: the file.
        arrays: names and arrays of numbers; each is asked for when it is written.
    """
    with ZipFile(filename, "w") as file:
        for name, array in arrays:
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
