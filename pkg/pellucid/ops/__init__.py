"""The op table by group. Importing this declares every op; ``OPS`` then holds them by name, and `op.public`
where they are public."""

from importlib import import_module

from ..op.schema import OPS
from .aliases import name_aliases
<<<<<<< HEAD

# The files of declarations, in the order of docs/reference.md.
_FILES = {
    "elementwise": "arithmetic division clamp bitwise comparison functions activations numbers complex gamma "
    "bessel probability polynomials fake_quantize",
    "reduce": "reductions extremum variance order_statistics differences scan running",
    "norm": "softmax normalization channels",
    "matmul": "dense linear contractions einsum",
    "attention": "scaled_dot_product cache",
    "conv": "convolution derivatives pool window_ops",
    "image": "resample grid shuffle",
    "quant": "products",
    "index": "gather scatter_reduce selection places rows sort counting histograms embeddings",
    "shape": "views slicing movement joining splitting rearranging diagonals scatters padding copies "
    "creation grids",
    "linalg": "products norms triangular lu solvers orthogonal spectral least_squares symmetric older",
    "fft": "transform transforms windows short_time",
    "random": "distributions variates rejection dropouts",
    "recurrence": "selective_scan delta_rule",
}
GROUPS = tuple(
    import_module(f"{__name__}.{folder}.{name}") for folder, names in _FILES.items() for name in names.split()
=======
from .attention import cache, scaled_dot_product
from .conv import convolution, derivatives, pool, window_ops
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
from .fft import short_time, transform, transforms, windows
from .image import grid, resample, shuffle
from .index import counting, embeddings, gather, histograms, places, rows, scatter_reduce, selection, sort
from .linalg import (
    least_squares,
    lu,
    norms,
    older,
    orthogonal,
    products,
    solvers,
    spectral,
    symmetric,
    triangular,
)
from .matmul import contractions, dense, einsum, linear
from .norm import channels, normalization, softmax
from .quant import products as quant_products
from .random import distributions, dropouts, rejection, variates
from .recurrence import delta_rule, selective_scan
from .reduce import differences, extremum, order_statistics, reductions, running, scan, variance
from .shape import (
    copies,
    creation,
    diagonals,
    grids,
    inplace_views,
    joining,
    movement,
    padding,
    rearranging,
    resizing,
    scatters,
    slicing,
    splitting,
    views,
)

GROUPS = (
    arithmetic,
    division,
    clamp,
    bitwise,
    scaled_dot_product,
    cache,
    comparison,
    convolution,
    derivatives,
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
    transform,
    transforms,
    windows,
    short_time,
    gather,
    scatter_reduce,
    selection,
    places,
    counting,
    embeddings,
    histograms,
    joining,
    rearranging,
    diagonals,
    scatters,
    padding,
    copies,
    inplace_views,
    resizing,
    grids,
    linear,
    dense,
    contractions,
    einsum,
    triangular,
    lu,
    solvers,
    orthogonal,
    spectral,
    least_squares,
    symmetric,
    products,
    norms,
    older,
    movement,
    normalization,
    channels,
    pool,
    window_ops,
    quant_products,
    resample,
    grid,
    shuffle,
    distributions,
    dropouts,
    variates,
    rejection,
    selective_scan,
    delta_rule,
    reductions,
    variance,
    order_statistics,
    differences,
    rows,
    scan,
    running,
    slicing,
    splitting,
    softmax,
    sort,
    views,
>>>>>>> 4995486 (In-place views, resize_, set_; running products shared by workgroups, scans through workgroup memory, a block of random words for four neighbours, dropout in one kernel)
)

name_aliases()

__all__ = ["GROUPS", "OPS"]
