"""`pellucid.linalg`: products, solvers and decompositions of matrices. PyTorch's ``torch.linalg``."""

from ...errors import LinAlgError
from ...op.public import EXPORTS
from ...tensors.absent import refuse_others

globals().update(EXPORTS["linalg"])
__all__ = sorted([*EXPORTS["linalg"], LinAlgError.__name__])  # pyright: ignore[reportUnsupportedDunderAll]

refuse_others("torch.linalg", globals())
