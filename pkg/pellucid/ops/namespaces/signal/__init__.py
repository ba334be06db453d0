"""`pellucid.signal`: windows of signals. PyTorch's ``torch.signal``."""

from . import windows

__all__ = ["windows"]
