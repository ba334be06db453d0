"""Systolic engine: all layers of a grid work in each tick of a clock, on what the tick before left them."""

from __future__ import annotations

from ...errors import ArgumentError, RangeError, ShapeError
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..network import GridNetwork, Position


class Systolic:
    """Runs a network tick by tick: each layer reads what its predecessor gave in the tick before.

    A chain of D layers gives the sequential result after D ticks, and then one result a tick. Links bring
    what their source gave in the tick before, forward and back alike. Layers that nothing has reached yet
    rest. All layers read before any writes, so their order does not matter.

    Gradients flow back through ticks and links. With `window` the graph is cut every so many ticks (truncated
    backpropagation through time), so that memory stays flat.

    Args:
        network: what runs; layers that are switched off hand their input on.
        window: ticks between cuts of the graph; never if None.
        history: whether what each layer gave in each tick is kept in `history`.

    Attributes:
        ticks: how many there were.
        buffers: what each layer gave in the last tick.
        history: a dict as `buffers` for each tick, if asked for.

    Raises:
        ArgumentError: the network has no layers.
        RangeError: the window is not positive.

    Source: Kung and Leiserson 1978, "Systolic arrays (for VLSI)"

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.GridNetwork(1, 1, 2, 1, {(0, 0, x, 0): pellucid.nn.ReLU() for x in range(2)})
        >>> engine = pellucid.grid.Systolic(net)
        >>> x = pellucid.ones(1, device="cpu")
        >>> engine.tick(x) is None, engine.tick(x).item()
        (True, 1.0)
    """

    def __init__(self, network: GridNetwork, window: int | None = None, history: bool = False):
        if not isinstance(network, GridNetwork) or not any(True for _ in network.layers()):
            raise ArgumentError("Systolic: the network must be a GridNetwork with at least one layer.")
        if window is not None and index(window, "Systolic: window") < 1:
            raise RangeError(f"Systolic: window must be at least 1, not {window}.")
        self.network, self.window, self.keep = network, window, history
        self.reset()

    def reset(self) -> None:
        """Empty all buffers."""
        self.ticks = 0
        self.buffers: dict[Position, Tensor] = {}
        self.history: list[dict[Position, Tensor]] = []

    def detach(self) -> None:
        """Cut the graph here: later gradients end at what the buffers hold now."""
        self.buffers = {place: value.detach() for place, value in self.buffers.items()}

    def tick(self, input: Tensor | None = None) -> Tensor | None:
        """One step of the clock.

        Args:
            input: what the first layer reads; it rests if None.

        Returns:
            What the last layer gives, or None as long as nothing reached it.
        """
        if self.window is not None and self.ticks and self.ticks % self.window == 0:
            self.detach()
        made: dict[Position, Tensor] = {}
        before = input
        last = None
        for place, layer in self.network.layers():
            value = before
            for link in self.network.links:
                if link.target == place and (brought := self.buffers.get(link.source)) is not None:
                    value = _joined(value, brought, link.combine, place)
            if value is not None:
                made[place] = value if place in self.network.disabled else layer(value)
            before, last = self.buffers.get(place), place
        self.buffers = made
        self.ticks += 1
        if self.keep:
            self.history.append(dict(made))
        assert last is not None
        return made.get(last)


def _joined(value: Tensor | None, brought: Tensor, combine: str, place: Position) -> Tensor:
    if value is None or combine == "replace":
        return brought
    if value.shape != brought.shape:
        raise ShapeError(
            f"Systolic: a link brings {tuple(brought.shape)} to {place}, whose input is {tuple(value.shape)}."
        )
    return value + brought
