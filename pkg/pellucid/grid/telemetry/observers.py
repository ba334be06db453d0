"""Observers of layers: statistics of outputs and gradients by hooks, to the console, a server, or windows."""

from __future__ import annotations

import json
import math
import sys
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TextIO

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError, RangeError, SourceError
from ...nn.modules.module import Module
from ...ops.shape.joining import stack
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..evolution.dna import kind_of
from ..network import GridNetwork

MODES = ("forward", "backward", "gradient")


class LayerStats(NamedTuple):
    """Numbers of a tensor: mean, largest, least, the part that is not 0, and how many there are."""

    mean: float
    largest: float
    least: float
    active: float
    total: int


def layer_stats(input: Tensor) -> LayerStats:
    """Mean, extremes and activity of a tensor, computed on its device and read at once.

    Args:
        input: any shape but an empty one.

    Raises:
        ArgumentError: the tensor is empty.

    Example:
        >>> import pellucid
        >>> pellucid.grid.layer_stats(pellucid.tensor([0.0, 3.0, -1.0, 0.0], device="cpu"))
        LayerStats(mean=0.5, largest=3.0, least=-1.0, active=0.5, total=4)
    """
    if not input.numel():
        raise ArgumentError("layer_stats: an empty tensor has no largest number.")
    return _read([(_reduced(input), input.numel())])[0]


@dataclass(frozen=True)
class LayerEvent:
    """A layer was run, or a gradient came to it.

    Args:
        mode: "forward" (its output), "backward" (the gradient of its output) or "gradient" (of a parameter).
        layer: its position, or its name in other modules; of a gradient, the parameter's name.
        kind: the type that its specification says, or its class.
        step: how often the network had been called, this call among them.
        model: the name that `observe` was given.
        reduced: mean, largest, least and active part, (4,), still on the device.
        total: how many numbers there were.
    """

    mode: str
    layer: str
    kind: str
    step: int
    model: str
    reduced: Tensor
    total: int

    @property
    def stats(self) -> LayerStats:
        """The statistics. Waits for the device."""
        return _read([(self.reduced, self.total)])[0]

    def to_json(self) -> str:
        """The event as JSON, with its statistics; null is what is not finite. Waits for the device."""
        told = {name: getattr(self, name) for name in ("mode", "layer", "kind", "step", "model")}
        stats = {name: v if math.isfinite(v) else None for name, v in self.stats._asdict().items()}
        return json.dumps(told | {"stats": stats})


Observer = Callable[[LayerEvent], None]


class Observation:
    """The hooks of `observe`; they go with `remove`, or at the end of a with block."""

    def __init__(self) -> None:
        self.step = 0
        self._handles: list = []

    def remove(self) -> None:
        """Stop observing."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def __enter__(self) -> Observation:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def observe(module: Module, observer: Observer, model: str = "model") -> Observation:
    """Tell an observer of every layer's output, of the gradient of that, and of gradients of parameters.

    Statistics are computed on the device, four numbers a layer; nothing is read unless the observer does.

    Args:
        module: a GridNetwork, whose layers are told by position, or any module, whose innermost modules are
            told by name.
        observer: called with each `LayerEvent`.
        model: its name, for observers of several.

    Returns:
        What ends it; also a context manager.

    Example:
        >>> import pellucid
        >>> layer, seen = pellucid.nn.Sequential(pellucid.nn.ReLU()), []
        >>> with pellucid.grid.observe(layer, seen.append):
        ...     y = layer(pellucid.tensor([-1.0, 2.0], device="cpu"))
        >>> seen[0].layer, seen[0].stats.active
        ('0', 0.5)
    """
    if not callable(observer):
        raise ArgumentError(f"observe: the observer must be callable, not {type(observer).__name__}.")
    found = Observation()

    def tell(mode: str, layer: str, kind: str, value: Tensor) -> None:
        if value.numel() and not value.dtype.is_complex:
            observer(LayerEvent(mode, layer, kind, found.step, model, _reduced(value), value.numel()))

    def count(*_: object) -> None:
        found.step += 1

    def backward(layer: str, kind: str, grad: Tensor) -> None:
        tell("backward", layer, kind, grad)

    found._handles.append(module.register_forward_pre_hook(count))
    for name, layer in _layers(module):
        kind = kind_of(layer)

        def forward(_module, _input, output, name=name, kind=kind):
            if isinstance(output, Tensor):
                tell("forward", name, kind, output)
                # A backward hook of the layer would warn where its input is the data.
                if output.requires_grad:
                    output.register_hook(partial(backward, name, kind))

        found._handles.append(layer.register_forward_hook(forward))
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:

            def gradient(p, name=name):
                tell("gradient", name, "parameter", p.grad)

            found._handles.append(parameter.register_post_accumulate_grad_hook(gradient))
    return found


class ConsoleObserver:
    """Prints a line for each event.

    Args:
        file: where to; the standard output if None.
        modes: of events that are printed.

    Example:
        >>> import pellucid
        >>> layer = pellucid.nn.Sequential(pellucid.nn.ReLU())
        >>> with pellucid.grid.observe(layer, pellucid.grid.ConsoleObserver()):
        ...     y = layer(pellucid.tensor([-1.0, 2.0], device="cpu"))
        model step 1 forward 0 ReLU: mean 1, from 0 to 2, 50% of 2 active
    """

    def __init__(self, file: TextIO | None = None, modes: tuple[str, ...] = MODES):
        self.file, self.modes = file, modes

    def __call__(self, event: LayerEvent) -> None:
        if event.mode in self.modes:
            s = event.stats
            print(
                f"{event.model} step {event.step} {event.mode} {event.layer} {event.kind}: "
                f"mean {s.mean:.4g}, from {s.least:.4g} to {s.largest:.4g}, "
                f"{s.active:.0%} of {s.total} active",
                file=self.file or sys.stdout,
            )


class HTTPObserver:
    """Posts each event as JSON to a server, and waits for its answer. In pages, give a function instead.

    Args:
        url: http or https.
        timeout: seconds to wait.

    Raises:
        ArgumentError: the address is another one.
        SourceError: when an event can't be delivered, or the server refuses it.

    Example:
        >>> import pellucid
        >>> pellucid.grid.HTTPObserver("http://127.0.0.1:8000/events").url
        'http://127.0.0.1:8000/events'
    """

    def __init__(self, url: str, timeout: float = 5.0):
        if not url.startswith(("http://", "https://")):
            raise ArgumentError(
                f"HTTPObserver: the address must begin with http:// or https://, not {url!r}."
            )
        self.url, self.timeout = url, timeout

    def __call__(self, event: LayerEvent) -> None:
        request = urllib.request.Request(
            self.url, event.to_json().encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                answer.read(1)
        except (urllib.error.URLError, OSError) as error:
            raise SourceError(f"HTTPObserver: {self.url} did not take an event: {error}") from error


class AggregatingObserver:
    """Keeps the last events of each layer, and sums them up when asked: nothing is read before.

    Args:
        window: how many events of a mode and layer are kept.

    Raises:
        RangeError: the window is not positive.

    Example:
        >>> import pellucid
        >>> layer, seen = pellucid.nn.Sequential(pellucid.nn.ReLU()), pellucid.grid.AggregatingObserver(2)
        >>> with pellucid.grid.observe(layer, seen):
        ...     for x in (9.0, 1.0, 3.0): y = layer(pellucid.tensor([x], device="cpu"))
        >>> seen.summary()["forward", "0"].mean
        2.0
    """

    def __init__(self, window: int = 100):
        if index(window, "AggregatingObserver: window") < 1:
            raise RangeError(f"AggregatingObserver: window must be at least 1, not {window}.")
        self.window = window
        self.events: dict[tuple[str, str], deque[LayerEvent]] = {}

    def __call__(self, event: LayerEvent) -> None:
        self.events.setdefault((event.mode, event.layer), deque(maxlen=self.window)).append(event)

    def summary(self) -> dict[tuple[str, str], LayerStats]:
        """Statistics over the window by mode and layer. Waits for the device, once."""
        all_events = [event for kept in self.events.values() for event in kept]
        stats = iter(_read([(event.reduced, event.total) for event in all_events]))
        return {key: _together([next(stats) for _ in kept]) for key, kept in self.events.items()}


def _layers(module: Module) -> Iterator[tuple[str, Module]]:
    if isinstance(module, GridNetwork):
        for place, layer in module.layers():
            yield str(place), layer
        return
    for name, inner in module.named_modules():
        if inner is not module and not any(True for _ in inner.children()):
            yield name, inner


def _reduced(value: Tensor) -> Tensor:
    with no_grad():
        x = value.detach().float()
        return stack([x.mean(), x.amax(), x.amin(), (x != 0).float().mean()])


def _read(found: list[tuple[Tensor, int]]) -> list[LayerStats]:
    if not found:
        return []
    first = found[0][0]
    rows = stack([reduced.to(first.device) for reduced, _ in found]).tolist()
    return [LayerStats(*row[:4], total=total) for row, (_, total) in zip(rows, found, strict=True)]


def _together(stats: list[LayerStats]) -> LayerStats:
    total = sum(s.total for s in stats)
    return LayerStats(
        sum(s.mean * s.total for s in stats) / total,
        max(s.largest for s in stats),
        min(s.least for s in stats),
        sum(s.active * s.total for s in stats) / total,
        total,
    )
