"""Relative positions as T5 has them: distances in buckets, which add numbers to the scores of heads.

Raffel et al. 2020, "Exploring the limits of transfer learning with a unified text-to-text transformer".
"""

from __future__ import annotations

from math import log

import numpy as np

from ..nn.modules.embedding import Embedding
from ..ops.elementwise.comparison import where
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor

# What is added to the scores of keys that are not seen; finite, as WGSL knows no infinity.
UNSEEN = -1e30


def buckets(distances: np.ndarray, count: int, farthest: int, both_sides: bool) -> np.ndarray:
    """The bucket of each distance from a query to a key.

    Near distances have a bucket each, those from a half of the buckets on share ever wider ones; from
    ``farthest`` on all share the last.

    Args:
        distances: position of the key minus that of the query.
        count: of buckets.
        farthest: the distance.
        both_sides: keys behind the query have the upper half of the buckets; else they share the first.
    """
    if both_sides:
        count //= 2
        upper, far = (distances > 0) * count, np.abs(distances)
    else:
        upper, far = 0, np.maximum(-distances, 0)
    exact = count // 2
    # In float32, as the models were trained: at the borders of buckets the last bit counts.
    ratio = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact))
    wide = exact + (ratio / np.float32(log(farthest / exact)) * np.float32(count - exact)).astype(np.int64)
    return upper + np.where(far < exact, far, np.minimum(wide, count - 1))


def relative_bias(table: Embedding, time: int, farthest: int, both_sides: bool = True) -> Tensor:
    """What is added to scores: (1, heads, time, time).

    Args:
        table: (buckets, heads).
        time: how many positions there are.
        farthest, both_sides: as in `buckets`.
    """
    steps = np.arange(time)
    distances = steps[None, :] - steps[:, None]
    found = buckets(distances, table.num_embeddings, farthest, both_sides)
    return table(tensor(found, device=table.weight.device)).permute(2, 0, 1).unsqueeze(0)


def additive(seen: Tensor | None) -> Tensor | float:
    """A mask as what is added to scores."""
    return 0.0 if seen is None else where(seen, 0.0, UNSEEN)
