"""What registering a hook returns, by PyTorch's name, and the mark of hooks that are not saved."""

from collections.abc import Callable

from ..autograd.handle import Handle as RemovableHandle


def unserializable_hook(f: Callable) -> Callable:
    """A decorator of a hook that does not go into files with its tensor; hooks of tensors never do here."""
    vars(f)["__torch_unserializable__"] = True
    return f


__all__ = ["RemovableHandle", "unserializable_hook"]
