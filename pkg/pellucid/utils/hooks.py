"""What registering a hook returns, by PyTorch's name."""

from ..autograd.handle import Handle as RemovableHandle

__all__ = ["RemovableHandle"]
