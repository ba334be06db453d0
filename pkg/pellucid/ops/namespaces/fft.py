"""`pellucid.fft`: discrete Fourier transforms. PyTorch's ``torch.fft``."""

from ...op.public import EXPORTS

globals().update(EXPORTS["fft"])
__all__ = sorted(EXPORTS["fft"])  # pyright: ignore[reportUnsupportedDunderAll]
