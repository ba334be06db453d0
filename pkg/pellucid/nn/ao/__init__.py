"""Architecture optimization: PyTorch's ``torch.ao``, of which quantization is here."""

from . import quantization

__all__ = ["quantization"]
