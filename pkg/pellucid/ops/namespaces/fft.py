"""`pellucid.fft`: discrete Fourier transforms. PyTorch's ``torch.fft``."""

from ...op.public import EXPORTS
from ...tensors.absent import refuse_others

globals().update(EXPORTS["fft"])
__all__ = sorted(EXPORTS["fft"])  # pyright: ignore[reportUnsupportedDunderAll]

refuse_others("torch.fft", globals())
