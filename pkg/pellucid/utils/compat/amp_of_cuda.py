"""PyTorch's older ``torch.cuda.amp``."""

from ...tensors.dtypes import float16
from .amp_by_device import of

globals().update(of("cuda", float16))
