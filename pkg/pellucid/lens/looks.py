"""One look of the logit lens: the most likely next ids after some layers, and how they travel to Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

from ..autograd.grad_mode import under
from ..errors import ArgumentError, ShapeError, WeightError
from ..nn.hooks import Tap
from ..nn.kept import Kept
from ..op.arguments import describe
from ..ops.index.sort import topk
from ..ops.norm.softmax import log_softmax
from ..ops.shape.joining import cat, stack
from ..tensors.meta import Meta
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


def as_slice(positions: slice | int | None) -> slice:
    """Positions that are looked at; all where None."""
    if isinstance(positions, int):
        return slice(positions, positions + 1 or None)
    if not isinstance(positions, slice | None):
        raise ArgumentError(
            f"lens: positions must be an integer, a slice or None, not {describe(positions)}."
        )
    return positions or slice(None)


@dataclass(frozen=True)
class Request:
    """What is asked of a model's layers; equal ones are the same look, each at the values of its time.

    Args:
        model: it is not kept alive.
        patterns: paths of the layers, or addresses of points.
        top_k: candidates per cell.
        start, stop, step: of the positions.
    """

    model: ref
    patterns: tuple[str, ...]
    top_k: int
    start: int | None
    stop: int | None
    step: int | None

    def look(self, seen: dict[str, Tensor]) -> tuple:
        """What a `LogitLens` is made of.

        Raises:
            WeightError: nothing that was seen fits.
            ShapeError: several sequences, or outputs that are not hidden states.
        """
        layers = {
            path: hidden
            for path, hidden in seen.items()
            if any(matches(path, p) or path.split(".")[0] == p for p in self.patterns)
        }
        self._check(layers)
        chosen = slice(self.start, self.stop, self.step)
        quiet, Tap.is_quiet = Tap.is_quiet, True
        try:
            found = under(False, _look, self.model(), list(layers.values()), chosen, self.top_k)
        finally:
            Tap.is_quiet = quiet
        return list(layers), *found

    def _check(self, layers: dict[str, Tensor]) -> None:
        if not layers:
            raise WeightError(
                f"logit_lens: nothing of what was seen fits {', '.join(self.patterns)!r}. Capture the "
                "layers, or give their pattern."
            )
        # What layers return is of one kind, or of few: each is checked once.
        kinds: dict[Meta, str] = {}
        for path, hidden in layers.items():
            kinds.setdefault(hidden._meta, path)
        for m, path in kinds.items():
            if m.rank != 3 or m.shape[0] != 1:
                raise ShapeError(
                    f"logit_lens: {path} returned shape {tuple(m.shape)}, not (1, time, dim). "
                    "Run one sequence, and give a pattern of layers."
                )
        chosen, time = slice(self.start, self.stop, self.step), min([m.shape[1] for m in kinds])
        if not len(range(time)[chosen]):
            raise ShapeError(
                f"logit_lens: positions {chosen} are none of the {time} that were seen. Give some of these."
            )


class LookTap(Tap):
    """A look that is a part of each call of a model: its hook, which runs behind those of the layers.

    Args:
        layers: what taps keep of these.
        looks: where what a `LogitLens` is made of is kept.
        request: what is asked.
        begin: called when the values count, before other work is handed to the device.
    """

    def __init__(self, layers: dict[str, Tensor], looks: Kept, request: Request, begin: Callable[[], None]):
        super().__init__(looks, "")
        self._layers, self.kind, self.begin = layers, request, begin

    def __call__(self, module: Any, args: tuple, output: Any) -> None:
        if not Tap.is_quiet:
            self.keep(self.kind.look(self._layers))

    def end(self) -> None:
        """Keep nothing any more. A captured call knows its taps until the next one: so the layers go, too."""
        super().end()
        self._layers = {}
        del self.begin


def _look(model: Any, layers: list[Tensor], positions: slice, top_k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, probabilities and both of what hidden states say; see `LogitLens`."""
    parts = [hidden[0, positions] for hidden in layers]
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
