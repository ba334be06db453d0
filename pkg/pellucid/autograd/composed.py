"""Functions that are made of ops and have a derivative of their own: where the chain of their parts meets
infinity times 0, takes another side of a corner, or would save more.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..op.schema import Argument
from .grad_mode import grad_enabled
from .recorder import finish, prepare


class _Composed:
    """What the graph needs to know of such a function: what it needs to know of an op."""

    outputs = ("out",)

    def __init__(self, name: str, signature: inspect.Signature, formulas: dict[str, Callable]):
        self.name = self.public = name
        self.arguments = tuple(
            Argument(p.name, "operand", p.default, p.kind is p.KEYWORD_ONLY)
            for p in signature.parameters.values()
        )
        self.grad = {k: (f, tuple(inspect.signature(f).parameters)) for k, f in formulas.items()}


def composed(*, name: str | None = None, **formulas: Callable) -> Callable[[Callable], Any]:
    """Give a function its derivative. Where a gradient is wanted its ops do not record, and its result hangs
    below one node.

    Args:
        name: what its node is called, if not as the function.
        formulas: by argument, for every tensor that can require grad, as those of `op`; or the same for all,
            which returns a dictionary.
    """

    def declare(function: Callable) -> Callable:
        signature = inspect.signature(function)
        o: Any = _Composed(name or function.__name__, signature, formulas)

        @functools.wraps(function)
        def call(*args, **kwargs):
            wants = False
            if grad_enabled.get():
                for a in (*args, *kwargs.values()):
                    # An example of a batch has no node, the batch has.
                    if getattr(a, "_node", None) is not None or getattr(a, "is_batched", False):
                        wants = True
                        break
            if not wants:
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            if any(getattr(a, "is_batched", False) for a in bound.args):
                from .batching import composed_call

                return composed_call(o, function, tuple(bound.arguments.values()))
            node = prepare(o, tuple(bound.arguments.values()))
            before = grad_enabled.set(False)
            try:
                out = function(*args, **kwargs)
            finally:
                grad_enabled.reset(before)
            finish(node, (out,))
            out._node, out._index = node, 0
            return out

        return call

    return declare


__all__ = ["composed"]
