"""Looks that are asked for at every step of a generation: begun with the step, so that nobody waits for them.

A step gives its id away while the next one runs ahead on the device. A look that is recorded then stands
behind that next step, and while its values travel the device has nothing to do. So what was asked for after
one step is begun with the following one, before the step that runs ahead. Who does not ask again ends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from ..autograd import edges
from ..autograd.grad_mode import under
from ..nn.modules import module as modules
from ..tensors.meta import Meta
from ..tensors.tensor import Tensor
from .looks import LogitLens, Request

# Looks that are begun with a step, those asked for last: who asks for more is not asking at every step.
_MOST = 8


@dataclass
class _Begun:
    """A look that nobody has asked for yet.

    Args:
        found: what comes of it.
        layers: what it looks at.
        state: of these and of the model.
    """

    found: LogitLens
    layers: dict[str, Tensor]
    state: tuple[int, ...]


class Ahead:
    """The looks at what one `Seen` keeps."""

    def __init__(self):
        # Since the last step: what was asked for, of which kind of values, and what came of it.
        self._asked: dict[Request, tuple[list[Meta], LogitLens]] = {}
        self._begun: dict[Request, _Begun] = {}
        self._weights = _Weights()

    def __reduce__(self):
        # A copy of what is seen begins with nothing asked for.
        return Ahead, ()

    def ask(self, request: Request, layers: dict[str, Tensor]) -> LogitLens:
        """The look that was begun, if nothing has changed since; else a new one."""
        begun = self._begun.pop(request, None)
        if (
            begun is not None
            and _are_same(begun.layers, layers)
            and begun.state == self._state(request, layers)
        ):
            found = begun.found
        else:
            found = request.look(layers)
        self._asked.pop(request, None)
        self._asked[request] = [x._meta for x in layers.values()], found
        if len(self._asked) > _MOST:
            del self._asked[next(iter(self._asked))]
        return found

    def begin(self, seen: dict[str, Tensor]) -> None:
        """Begin what was asked for after the step before, if values of the same kind are seen now."""
        asked, self._asked = self._asked, {}
        self._begun.clear()
        for request, (metas, before) in asked.items():
            layers = request.layers(seen)
            if request.model() is None or [x._meta for x in layers.values()] != metas:
                continue
            found = under(False, request.look, layers)
            if before.was_read:
                found.begin_read()
            self._begun[request] = _Begun(found, layers, self._state(request, layers))

    def _state(self, request: Request, layers: dict[str, Tensor]) -> tuple[int, ...]:
        """Another one when a value or a weight is."""
        return *self._weights.state(request.model(), layers), *[x._storage.version for x in layers.values()]


class _Weights:
    """The parameters behind the layers that are looked at; they are looked for once."""

    def __init__(self):
        self._found_at: tuple[int, ...] = ()
        self._parameters: dict[tuple[str, ...], list[ref[Tensor]]] = {}

    def state(self, model: Any, paths: Iterable[str]) -> tuple[int, ...]:
        """Another one when the model is changed: other modules, other memory, other values.

        Weights within the layers of a stack have done their work. Those of all others are looked at, which
        are few: what holds the head, or shares its weight, may be looked at as well.
        """
        at = id(model), modules.version, edges.version
        if self._found_at != at:
            self._parameters.clear()
            self._found_at = at
        paths = tuple(paths)
        if paths not in self._parameters:
            within = tuple([f"{path}." for path in paths if _is_stacked(path)])
            named = model.named_parameters()
            self._parameters[paths] = [ref(p) for path, p in named if not path.startswith(within)]
        # Versions only grow.
        found = [p._storage.version for get in self._parameters[paths] if (p := get()) is not None]
        return *at, sum(found)


def _is_stacked(path: str) -> bool:
    """Whether a module is one of several that are numbered, or lies within one."""
    return any(name.isdigit() for name in path.split("."))


def _are_same(some: dict[str, Tensor], others: dict[str, Tensor]) -> bool:
    return some.keys() == others.keys() and all(some[path] is x for path, x in others.items())
