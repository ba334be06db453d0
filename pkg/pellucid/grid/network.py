"""Networks whose layers lie in a volume of cells, with remote links between them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from ..device import webgpu
from ..errors import ArgumentError, RangeError, ShapeError
from ..nn.modules.module import Module
from ..tensors.dtypes import DType
from ..tensors.shape import index
from ..tensors.tensor import Tensor
from .packed.numbers import Precision
from .packed.polymorphic import morph, stored_bytes

LINKS = ("add", "replace")


class Position(NamedTuple):
    """Where a layer is: depth, row and column of its cell, and its number in the cell."""

    z: int
    y: int
    x: int
    layer: int

    def __str__(self) -> str:
        return ",".join(map(str, self))


_END = Position(-1, -1, -1, -1)


@dataclass(frozen=True)
class Link:
    """A remote link: what a layer gives goes, besides to the next layer, to the input of another one.

    Forward in the order of the grid it is a skip connection of the same pass; to an earlier layer, or to the
    layer itself, it is feedback: the value of the pass before, nothing in the first.

    Args:
        source, target: positions of layers.
        combine: "add" to the target's input, or "replace" it.
    """

    source: Position
    target: Position
    combine: str = "add"

    @property
    def is_feedback(self) -> bool:
        return self.target <= self.source


class Run(NamedTuple):
    """What `GridNetwork.run` gives: the output, what each layer gave in the last pass, the seconds each took,
    and what each gave in all passes, one after the other."""

    output: Tensor
    layers: dict[Position, Tensor]
    seconds: dict[Position, float]
    given: list[tuple[Position, Tensor]]

    def backward(self, gradient: Tensor | None = None) -> dict[Position, float]:
        """Go backward through the run, and tell how many seconds each layer took.

        A layer's time begins when the gradient of what it gave is there, and ends when that of the layer
        before is. Each is waited for, so this is slower than `output.backward()`.

        Args:
            gradient: of the output; not needed for one number.
        """
        seconds: dict[Position, float] = {}
        marks: list[tuple[Position, float]] = []

        def mark(position: Position, slope: Tensor) -> None:
            if slope.is_webgpu:
                webgpu.synchronize()
            marks.append((position, time.perf_counter()))

        hooks = [t.register_hook(partial(mark, p)) for p, t in self.given if t.requires_grad]
        try:
            self.output.backward(gradient)
            mark(_END, self.output)
        finally:
            for hook in hooks:
                hook.remove()
        for (position, began), (_, ended) in pairwise(marks):
            seconds[position] = seconds.get(position, 0.0) + ended - began
        return seconds


class GridNetwork(Module):
    """Layers in a volume of cells, run in the order of (z, y, x, l), with remote links forward and back.

    Each layer takes what the one before it gave. Positions without a layer, and layers that are switched off,
    hand their input on. With `passes` above 1 the volume runs several times on the same input, and feedback
    links carry values from pass to pass; gradients flow through all of it.

    Args:
        depth, rows, columns, layers_per_cell: lengths of the volume's axes.
        layers: modules by position (z, y, x, l).
        links: remote links.

    Raises:
        RangeError: a position outside the volume, a link between positions that have no layers, or an unknown
            way to combine.

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.GridNetwork(1, 1, 2, 1, {(0, 0, 0, 0): pellucid.nn.ReLU()})
        >>> net(pellucid.tensor([-1.0, 2.0], device="cpu")).tolist()
        [0.0, 2.0]
    """

    def __init__(
        self,
        depth: int,
        rows: int,
        columns: int,
        layers_per_cell: int,
        layers: Mapping[tuple[int, int, int, int], Module] | None = None,
        links: list[Link] | tuple[Link, ...] = (),
    ):
        super().__init__()
        names = "depth", "rows", "columns", "layers_per_cell"
        given = depth, rows, columns, layers_per_cell
        self.size = Position(
            *(index(n, f"GridNetwork: {what}") for n, what in zip(given, names, strict=True))
        )
        if min(self.size) < 1:
            raise RangeError(f"GridNetwork: each axis of the volume is at least 1, not {tuple(self.size)}.")
        self.links: list[Link] = []
        # What a specification says besides: kept, so that it is written again.
        self.extra: dict[str, Any] = {}
        self.disabled: set[Position] = set()
        for position, layer in (layers or {}).items():
            self.place(position, layer)
        for link in links:
            self.connect(link)

    def position(self, place: tuple[int, int, int, int]) -> Position:
        """A position in the volume; refused if it is outside."""
        if len(place) != 4 or any(not 0 <= p < n for p, n in zip(place, self.size, strict=True)):
            raise RangeError(f"GridNetwork: {tuple(place)} is no position in a volume of {tuple(self.size)}.")
        return Position(*place)

    def index(self, place: tuple[int, int, int, int]) -> int:
        """The number of a position in the order in which layers run."""
        number = 0
        for p, n in zip(self.position(place), self.size, strict=True):
            number = number * n + p
        return number

    def positions(self) -> Iterator[Position]:
        """All positions of the volume in the order in which layers run."""
        for number in range(prod(self.size)):
            place = []
            for n in reversed(self.size):
                place.append(number % n)
                number //= n
            yield Position(*reversed(place))

    def layer(self, place: tuple[int, int, int, int]) -> Module | None:
        """The layer at a position, or None."""
        return self._modules.get(_name(self.position(place)))

    def layers(self) -> Iterator[tuple[Position, Module]]:
        """Positions that have a layer, with it, in the order in which they run."""
        for position in self.positions():
            layer = self._modules.get(_name(position))
            if layer is not None:
                yield position, layer

    def place(self, place: tuple[int, int, int, int], layer: Module | None) -> None:
        """Put a layer at a position, or take it away with None; its links go with it."""
        position = self.position(place)
        if layer is None:
            if self.layer(position) is not None:
                delattr(self, _name(position))
            self.links = [k for k in self.links if position not in (k.source, k.target)]
            self.disabled.discard(position)
            return
        if not isinstance(layer, Module):
            raise ArgumentError(
                f"GridNetwork: the layer at {position} is a {type(layer).__name__}, no Module."
            )
        self.add_module(_name(position), layer)

    def connect(self, link: Link) -> None:
        """Add a remote link."""
        source, target = self.position(link.source), self.position(link.target)
        for end in (source, target):
            if self.layer(end) is None:
                raise RangeError(
                    f"GridNetwork: a link from {source} to {target} ends where no layer is: {end}."
                )
        if link.combine not in LINKS:
            raise RangeError(f"Link: combine must be one of {', '.join(LINKS)}, not {link.combine!r}.")
        self.links.append(Link(source, target, link.combine))

    def disconnect(self, source: tuple[int, int, int, int], target: tuple[int, int, int, int]) -> None:
        """Remove the links between two positions."""
        self.links = [k for k in self.links if (k.source, k.target) != (tuple(source), tuple(target))]

    def enable(self, place: tuple[int, int, int, int], on: bool = True) -> None:
        """Switch a layer on or off; one that is off hands its input on."""
        position = self.position(place)
        if on:
            self.disabled.discard(position)
        else:
            self.disabled.add(position)

    def morph(
        self,
        dtype: str | DType | Precision,
        place: tuple[int, int, int, int] | None = None,
        group: str | int = "tensor",
        scale_dtype: str | None = None,
    ) -> GridNetwork:
        """Compute with parameters in another kind of number, and return the network.

        Args:
            dtype: one of the 21 kinds; "float32" shows the masters again.
            place: of the layer that changes; all if None.
            group, scale_dtype: which numbers share a scale, and its type, as in `pack`.
        """
        where = None if place is None else self.position(place)
        for position, layer in self.layers():
            if where in (None, position):
                # A layer with a specification writes down what it became.
                getattr(layer, "morph", partial(morph, layer))(dtype, group=group, scale_dtype=scale_dtype)
        return self

    def num_parameters(self) -> int:
        """How many numbers the parameters of all layers hold."""
        return sum(p.numel() for p in self.parameters())

    def num_bytes(self) -> int:
        """Bytes of the parameters and buffers of all layers, as they are stored, with scales."""
        return stored_bytes(self)

    def forward(self, input: Tensor, passes: int = 1) -> Tensor:
        return self._passes(input, passes)[0]

    def run(self, input: Tensor, passes: int = 1) -> Run:
        """The output, what each layer gave in the last pass, and how many seconds each layer took.

        Each layer is waited for, so this is slower than a call of the network.

        Args:
            input: what the first layer takes.
            passes: how often the volume runs; seconds are summed over the passes.
        """
        seconds: dict[Position, float] = {}
        given: list[tuple[Position, Tensor]] = []
        output, layers = self._passes(input, passes, seconds, given=given)
        return Run(output, layers, seconds, given)

    def _passes(
        self,
        input: Tensor,
        passes: int,
        seconds: dict[Position, float] | None = None,
        seen: dict[Position, Tensor] | None = None,
        given: list[tuple[Position, Tensor]] | None = None,
    ) -> tuple[Tensor, dict[Position, Tensor]]:
        if index(passes, "GridNetwork: passes") < 1:
            raise RangeError(f"GridNetwork: passes must be at least 1, not {passes}.")
        before: dict[Position, Tensor] = {}
        out = input
        for _ in range(passes):
            made: dict[Position, Tensor] = {}
            out = input
            for position, layer in self.layers():
                for link in self.links:
                    if link.target == position:
                        out = _arrived(out, (before if link.is_feedback else made).get(link.source), link)
                if seen is not None:
                    seen[position] = out
                if position not in self.disabled:
                    began = time.perf_counter()
                    out = layer(out)
                    if seconds is not None:
                        if out.is_webgpu:
                            webgpu.synchronize()
                        seconds[position] = seconds.get(position, 0.0) + time.perf_counter() - began
                    if given is not None:
                        given.append((position, out))
                made[position] = out
            before = made
        return out, before

    def extra_repr(self) -> str:
        links = f", {len(self.links)} links" if self.links else ""
        return f"{', '.join(map(str, self.size))}{links}"


def _name(position: Position) -> str:
    """The name of a position's layer among the modules: it has no dot, so it can be part of a path."""
    return "z{}y{}x{}l{}".format(*position)


def _arrived(input: Tensor, value: Tensor | None, link: Link) -> Tensor:
    """The input of a layer after what a link brought: nothing yet in the first pass of a feedback."""
    if value is None:
        return input
    if link.combine == "replace":
        return value
    if value.shape != input.shape:
        raise ShapeError(
            f"GridNetwork: the link from {link.source} brings {tuple(value.shape)} to {link.target}, whose "
            f"input is {tuple(input.shape)}. Use combine='replace', or layers of equal shape."
        )
    return input + value
