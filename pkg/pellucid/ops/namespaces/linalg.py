"""`pellucid.linalg`: products, solvers and decompositions of matrices. PyTorch's ``torch.linalg``."""

from ...op.public import EXPORTS

globals().update(EXPORTS["linalg"])
__all__ = sorted(EXPORTS["linalg"])  # pyright: ignore[reportUnsupportedDunderAll]
