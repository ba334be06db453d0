"""PyTorch's older ``torch.cpu.amp``."""

from ...tensors.dtypes import bfloat16
from .amp_by_device import of

globals().update(of("cpu", bfloat16))
