"""The op table by group. Importing this declares every op; ``OPS`` then holds them by name.

A group names in ``METHODS`` which of its functions are methods of Tensor, and in ``IN_PLACE`` which of those
have a form with underscore.
"""

from ..op import OPS
from . import (
    arithmetic,
    attention,
    cache,
    comparison,
    conv,
    creation,
    extremum,
    functions,
    gather,
    index,
    joining,
    linear,
    matmul,
    movement,
    norm,
    pool,
    quant,
    random,
    reduce,
    rows,
    scan,
    slicing,
    softmax,
    sort,
    views,
)

GROUPS = (
    arithmetic, attention, cache, comparison, conv, creation, extremum, functions, gather, index, joining,
    linear, matmul, movement, norm, pool, quant, random, reduce, rows, scan, slicing, softmax, sort,
    views,
)  # fmt: skip

__all__ = ["GROUPS", "OPS"]
