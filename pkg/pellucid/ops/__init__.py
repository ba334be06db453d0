"""The op table by group. Importing this declares every op; ``OPS`` then holds them by name, and `op.public`
where they are public."""

from ..op.schema import OPS
from .attention import cache, scaled_dot_product
from .conv import convolution, pool
from .elementwise import (
    activations,
    arithmetic,
    bessel,
    bitwise,
    clamp,
    comparison,
    complex,
    division,
    functions,
    gamma,
    numbers,
    polynomials,
    probability,
)
from .index import gather, rows, selection, sort
from .matmul import dense, linear
from .norm import normalization, softmax
from .quant import products
from .random import distributions
from .reduce import extremum, reductions, scan, variance
from .shape import creation, joining, movement, slicing, splitting, views

GROUPS = (
    arithmetic,
    division,
    clamp,
    bitwise,
    scaled_dot_product,
    cache,
    comparison,
    convolution,
    creation,
    extremum,
    activations,
    functions,
    numbers,
    complex,
    gamma,
    bessel,
    probability,
    polynomials,
    gather,
    selection,
    joining,
    linear,
    dense,
    movement,
    normalization,
    pool,
    products,
    distributions,
    reductions,
    variance,
    rows,
    scan,
    slicing,
    splitting,
    softmax,
    sort,
    views,
)

from . import aliases  # noqa: E402  (names what all of them declare)

__all__ = ["GROUPS", "OPS"]
