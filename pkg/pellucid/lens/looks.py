"""One look of the logit lens: the most likely next ids after some layers, and how they travel to Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from ..jit import Compiled
from ..ops.index.sort import topk
from ..ops.norm.softmax import log_softmax
from ..ops.shape.joining import cat, stack
from ..tensors.reading import ListRead
from ..tensors.tensor import Tensor
from .paths import matches

# Hidden states that go through the head at once; more would hold more logits than that gains.
_ROWS = 64


@dataclass
class LogitLens:
    """The most likely next ids after every layer and position.

    Args:
        paths: the layers' paths, in order.
        ids: (layers, positions, k) int64.
        probabilities: (layers, positions, k) float32, largest first.
        both: (2, layers, positions, k) float32, probabilities and ids, so that one read brings them; made of
            them if not given.

    Attributes:
        was_read: whether the values were asked for.
    """

    paths: list[str]
    ids: Tensor
    probabilities: Tensor
    both: Tensor | None = field(default=None, repr=False)

    def __post_init__(self):
        self.was_read = False
        self._read: ListRead | None = None
        self._values: list[list[list[list[float]]]] = []

    def begin_read(self) -> None:
        """Let the values travel while other work goes on; `table` waits for them."""
        if self._read is None and not self._values:
            self.both = _together(self.ids, self.probabilities) if self.both is None else self.both
            self._read = self.both.tolist_later()

    def table(self, tokenizer: Any = None) -> list[list[list[tuple[Any, float]]]]:
        """Values as Python lists: [layer][position] -> [(token, probability), ...]. Waits for the device.

        Args:
            tokenizer: turns ids into text, each id once; without one ids stay numbers.
        """
        if not self._values:
            self._values = self._claim().result()
        return self._cells(tokenizer)

    async def table_async(self, tokenizer: Any = None) -> list[list[list[tuple[Any, float]]]]:
        """The awaitable twin of `table`."""
        if not self._values:
            self._values = await self._claim().result_async()
        return self._cells(tokenizer)

    def _claim(self) -> ListRead:
        """The read that is under way: it gives its values to one."""
        self.was_read = True
        self.begin_read()
        read, self._read = self._read, None
        assert read is not None
        return read

    def _cells(self, tokenizer: Any) -> list[list[list[tuple[Any, float]]]]:
        name = int if tokenizer is None else _names(tokenizer)
        probabilities, ids = self._values
        return [
            [list(zip(map(name, i), p, strict=True)) for i, p in zip(*layer, strict=True)]
            for layer in zip(ids, probabilities, strict=True)
        ]


@dataclass(frozen=True)
class Request:
    """What is asked of a model's layers; equal ones are the same look, each at the values of its time.

    Args:
        model: it is not kept alive.
        pattern: paths of the layers.
        top_k: candidates per cell.
        start, stop, step: of the positions.
    """

    model: ref
    pattern: str
    top_k: int
    start: int | None
    stop: int | None
    step: int | None

    def layers(self, seen: dict[str, Tensor]) -> dict[str, Tensor]:
        """The hidden states, by path."""
        return {path: hidden for path, hidden in seen.items() if matches(path, self.pattern)}

    def look(self, layers: dict[str, Tensor], again: bool = True) -> LogitLens:
        """Look at these; ``again`` where it is worth a capture."""
        look = _captured_look(self.model()) if again else partial(_look, self.model())
        found = look(list(layers.values()), self.start, self.stop, self.step, self.top_k)
        return LogitLens(list(layers), *found)


_looks: WeakKeyDictionary[Any, Compiled] = WeakKeyDictionary()


def _captured_look(model: Any) -> Compiled:
    """`_look` through a model's head, captured; the model is not kept alive."""
    if model not in _looks:
        get: Any = ref(model)

        def look(layers: list[Tensor], start: int | None, stop: int | None, step: int | None, top_k: int):
            return _look(get(), layers, start, stop, step, top_k)

        _looks[model] = Compiled(look, tree=lambda: get().modules(), quiet=True)
    return _looks[model]


def _look(
    model: Any, layers: list[Tensor], start: int | None, stop: int | None, step: int | None, top_k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, probabilities and both of what hidden states say; see `LogitLens`."""
    parts = [hidden[0, start:stop:step] for hidden in layers]
    # The head is large and is read once for many rows: layers and positions go through it together.
    rows = cat(parts)
    found = [_best(model, rows[k : k + _ROWS], top_k) for k in range(0, rows.shape[0], _ROWS)]
    shape = (len(parts), parts[0].shape[0], top_k)
    ids, probabilities = (_joined(list(values)).reshape(shape) for values in zip(*found, strict=True))
    both = _together(ids, probabilities)
    return ids, both[0], both


def _joined(parts: list[Tensor]) -> Tensor:
    return cat(parts) if len(parts) > 1 else parts[0]


def _together(ids: Tensor, probabilities: Tensor) -> Tensor:
    """In one tensor: float32 holds whole numbers up to 2^24, which no vocabulary reaches; halves do not."""
    return stack([probabilities.float(), ids])


def _best(model: Any, rows: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """The most likely next ids after some hidden states, and their probabilities."""
    values, indices = topk(log_softmax(model.unembed(rows), -1), top_k, -1)
    return indices, values.exp()


# What tokenizers make of single ids.
_texts: WeakKeyDictionary[Any, dict[float, str]] = WeakKeyDictionary()


def _names(tokenizer: Any) -> Callable[[float], str]:
    """Gives an id's text."""
    try:
        known = _texts.setdefault(tokenizer, {})
    except TypeError:  # it has no hash, or no weak references
        known = {}

    def name(token: float) -> str:
        if token not in known:
            known[token] = tokenizer.decode([int(token)])
        return known[token]

    return name
