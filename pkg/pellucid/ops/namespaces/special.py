"""`pellucid.special`: what mathematics and statistics know by name. PyTorch's ``torch.special``."""

from ...op.public import EXPORTS

globals().update(EXPORTS["special"])
__all__ = sorted(EXPORTS["special"])  # pyright: ignore[reportUnsupportedDunderAll]
