"""What stands around a program: PyTorch's ``torch.utils``, and `compat`, which stands for `torch`."""

from . import _pytree, benchmark, checkpoint, data, hooks, weak
from .swap import swap_tensors

__all__ = ["_pytree", "benchmark", "checkpoint", "data", "hooks", "swap_tensors", "weak"]
