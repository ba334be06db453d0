"""The two halves of a step of generation, captured: from ids to logits, and from logits to ids."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, ref

from ...autograd.grad_mode import under
from ...op.jit import Compiled
from ...tensors.tensor import Tensor
from .choice import pick


class Step:
    """The steps of one model, whoever generates with it.

    Args:
        model: the model; it is not kept alive.
    """

    def __init__(self, model: Any):
        self._model: Any = ref(model)
        self._cache: Any = None
        self._logits = Compiled(
            self._forward, ("position", "slot"), tree=lambda: self._model().modules(), quiet=True
        )
        self._ids = Compiled(pick, ("column",), tree=lambda: (), quiet=True)

    def logits(self, ids: Tensor, cache: Any) -> Tensor:
        """Logits (batch, vocab) of what follows ``ids`` (batch, time), which the cache is made longer by.

        Prompts have any length, and run eagerly.
        """
        run = self._logits if ids.shape[1] == 1 and ids.device.type == "webgpu" else self._forward
        position, self._cache = cache.length, cache
        try:
            return under(False, run, ids, position, cache.slot, cache.memory)
        finally:
            self._cache = None
            cache.settle(position + ids.shape[1])

    def _forward(self, ids: Tensor, position: int, slot: int, memory: list[Tensor]) -> Tensor:
        """The memory of the cache is given as well, so that a capture knows it as an argument."""
        self._cache.at(position, slot)
        return self._model().next_logits(ids, self._cache)

    def ids(self, *inputs: Any) -> Tensor:
        """The next ids; see `pick`."""
        run = self._ids if inputs[0].device.type == "webgpu" else pick
        return under(False, run, *inputs)


_steps: WeakKeyDictionary[Any, Step] = WeakKeyDictionary()


def step_of(model: Any) -> Step:
    """The captured steps of a model: what one generation has captured, the next one replays."""
    if model not in _steps:
        _steps[model] = Step(model)
    return _steps[model]
