"""The op table by group. Importing this declares every op; ``OPS`` then holds them by name, and `op.public`
where they are public."""

import sys
from importlib import import_module

from ..op.schema import OPS
from .aliases import name_aliases

# The files of declarations, in the order of docs/reference.md.
_FILES = {
    "elementwise": "arithmetic division clamp bitwise comparison functions rounding activations numbers "
    "complex gamma bessel probability polynomials fake_quantize",
    "reduce": "reductions truth extremum variance order_statistics differences logarithms scan running",
    "norm": "softmax normalization channels",
    "matmul": "dense linear contractions einsum",
    "attention": "scaled_dot_product cache",
    "conv": "convolution derivatives pool window_ops",
    "image": "resample grid shuffle",
    "quant": "products",
    "index": "gather scatter_reduce selection places rows sort counting histograms embeddings",
    "shape": "views slicing movement joining splitting rearranging diagonals scatters padding copies "
    "resizing creation grids",
    "linalg": "products norms triangular lu solvers orthogonal spectral least_squares symmetric lobpcg older",
    "fft": "transform transforms windows short_time",
    "random": "distributions variates rejection dropouts",
    "recurrence": "recurrent_steps recurrent selective_scan delta_rule",
}
GROUPS = tuple(
    import_module(f"{__name__}.{folder}.{name}") for folder, names in _FILES.items() for name in names.split()
)

name_aliases()

__all__ = ["GROUPS", "OPS"]


def __getattr__(name: str):
    # ``torch.ops.<namespace>``, where a program imports the package by PyTorch's name; nothing is declared
    # before there is the module by which that is done.
    library = sys.modules.get(f"{__name__.rpartition('.')[0]}.utils.compat.library")
    if library is not None and (made := library.__dict__.get("namespace", lambda _: None)(name)) is not None:
        return made
    raise AttributeError(f"pellucid.ops has no {name!r}, and no operator is declared in such a namespace.")
