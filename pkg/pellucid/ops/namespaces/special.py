"""`pellucid.special`: what mathematics and statistics know by name. PyTorch's ``torch.special``."""

from ...op.public import EXPORTS
from ...tensors.absent import refuse_others

globals().update(EXPORTS["special"])
__all__ = sorted(EXPORTS["special"])  # pyright: ignore[reportUnsupportedDunderAll]

refuse_others("torch.special", globals())
