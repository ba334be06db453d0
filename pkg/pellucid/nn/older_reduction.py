"""size_average and reduce: what losses took before there was ``reduction``; they still do, with a warning."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import warn

F = TypeVar("F", bound=Callable)
OLDER = ("size_average", "reduce")
_DOC = "        size_average, reduce: older names; False means a sum, or no reduction. Use reduction.\n"


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that is meant: the older arguments decide where one is given.

    Args:
        size_average, reduce: True if None.
        reduction: where both are None.
    """
    if size_average is None and reduce is None:
        return reduction
    is_kept = reduce is not None and not reduce
    meant = "none" if is_kept else "mean" if size_average is None or size_average else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction={meant!r} instead.")
    return meant


def takes_older(before: str = "reduce") -> Callable[[F], F]:
    """A loss that also takes the older arguments, in PyTorch's places.

    Args:
        before: the argument before which ``size_average`` stands; ``reduce`` stands before ``reduction``.
    """

    def declare(loss: F) -> F:
        own = inspect.signature(loss)
        parameters: list[inspect.Parameter] = []
        for p in own.parameters.values():
            added = [name for name, at in zip(OLDER, (before, "reduction"), strict=True) if at == p.name]
            if p.name == "reduction" and before == "reduce":
                added = list(OLDER)
            parameters += [p.replace(name=name, default=None, annotation="bool | None") for name in added]
            parameters.append(p)
        signature = own.replace(parameters=parameters)
        first = list(signature.parameters).index("size_average")

        @functools.wraps(loss)
        def call(*args, **kwargs):
            if len(args) <= first and not any(name in kwargs for name in OLDER):
                return loss(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            size_average, reduce = (given.pop(name, None) for name in OLDER)
            given["reduction"] = reduction_of(size_average, reduce, given.get("reduction", "mean"))
            return loss(**given)

        made: Any = call
        made.__signature__ = signature
        made.newer = loss  # what an operator of ATen is: it has no such arguments
        made.__doc__ = (loss.__doc__ or "").replace("        reduction: ", f"{_DOC}        reduction: ", 1)
        return made

    return declare
