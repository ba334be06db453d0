"""`pellucid.signal.windows`: windows by name. PyTorch's ``torch.signal.windows``."""

from ....op.public import EXPORTS

globals().update(EXPORTS["signal.windows"])
__all__ = sorted(EXPORTS["signal.windows"])  # pyright: ignore[reportUnsupportedDunderAll]
