"""Images whose channels come last by their shape, and first in memory, as convolutions here want them.

A convolution gives a view of its result. An op that works element by element would write what it reads in
the order of the shape, and the next convolution would have to copy it back; so it works on the planes.
"""

from __future__ import annotations

from collections.abc import Callable

from ....tensors.tensor import Tensor


def first(x: Tensor) -> Tensor:
    """The image with its channels first: (batch, channels, height, width)."""
    return x.permute(0, 3, 1, 2)


def last(x: Tensor) -> Tensor:
    """The image with its channels last again."""
    return x.permute(0, 2, 3, 1)


def held(x: Tensor) -> Tensor:
    """The image, copied so that it is held channels first."""
    return last(first(x).contiguous())


def _is_held(x: Tensor) -> bool:
    return len(x.shape) == 4 and not x.is_contiguous() and first(x).is_contiguous()


def planes(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that works element by element, on tensors alone: on the planes where one is held so."""

    def run(*tensors: Tensor) -> Tensor:
        if not any(map(_is_held, tensors)) or any(len(x.shape) > 4 for x in tensors):
            return function(*tensors)
        wide = (x if len(x.shape) == 4 else x.reshape(*[1] * (4 - len(x.shape)), *x.shape) for x in tensors)
        return last(function(*map(first, wide)))

    return run
