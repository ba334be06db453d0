"""Making a batch of examples: numbers and arrays become tensors, tensors are stacked, containers stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...device import get_default_device
from ...errors import ShapeError
from ...ops.shape.joining import stack
from ...tensors.construct import as_tensor, tensor
from ...tensors.dtypes import float64
from ...tensors.tensor import Tensor


def default_convert(data: Any) -> Any:
    """Arrays of an example as tensors, wherever they are in it; the rest stays.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.default_convert
    """
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "SUaO":
        return as_tensor(data)
    return _within(data, default_convert)


def _within(data: Any, change: Callable[[Any], Any]) -> Any:
    """A container with each of its values changed."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, Mapping):
        return _like(data, {key: change(value) for key, value in data.items()})
    if isinstance(data, tuple):
        values = [change(value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [change(value) for value in data])
    return data


def _like(data: Any, values: Any) -> Any:
    """Values in a container of the type of another, where that can be made so."""
    try:
        return type(data)(values)
    except TypeError:
        return values


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples as one batch.

    Python's floats become float64 on the ``cpu`` device, as in PyTorch, and the default dtype on ``webgpu``,
    which has no float64.

    Args:
        batch: examples of one form: tensors, arrays, numbers, strings, or containers of these.

    Raises:
        ShapeError: containers differ in length, or tensors in shape.
        TypeError: an example is something else.

    Source: https://pytorch.org/docs/stable/data.html#torch.utils.data.default_collate

    Example:
        >>> import pellucid as torch
        >>> from pellucid.utils.data import default_collate
        >>> with torch.device("cpu"):
        ...     default_collate([{"x": 1}, {"x": 2}])["x"].tolist()
        [1, 2]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, np.ndarray) and first.dtype.kind not in "SUO":
        return default_collate([as_tensor(each) for each in batch])
    if isinstance(first, np.generic) and first.dtype.kind in "biufc":
        return as_tensor(np.stack(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64 if get_default_device().type == "cpu" else None)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([each[key] for each in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(each) != len(first) for each in batch):
            raise ShapeError("default_collate: each element in list of batch should be of equal size.")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*columns) if hasattr(first, "_fields") else columns
        return _like(first, columns)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}"
    )
