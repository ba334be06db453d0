"""Launches that the host knows: each is registered once, and what it does is remembered for fusion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .device.host import CODE_BITS, RUN
from .device.stream import stream
from .errors import KernelError, ShapeError
from .kernel import Source, fold, pack_params
from .mapping import Map
from .meta import Meta


@dataclass(eq=False)
class Node:
    """What a registered launch does.

    Args:
        op: the op that planned it, as users know it.
        source: the kernel, filled and typed.
        values: of the fields of Params; those that each run brings are 0.
        patched: fields that each run brings, in the order of the record's words.
        metas: of the tensor behind each binding, None where there is none.
        grid: workgroups.
        map: the expression, for kernels that are one.
        members: the launches that a fused one stands for.
    """

    op: str
    source: Source
    values: dict[str, Any]
    patched: tuple[str, ...]
    metas: tuple[Meta | None, ...]
    grid: int | tuple[int, int, int]
    map: Map | None = None
    members: tuple[Node, ...] = ()
    number: int = field(default=-1, init=False)

    @property
    def head(self) -> int:
        """The word that begins its records."""
        return self.number << CODE_BITS | RUN

    @property
    def label(self) -> str:
        """What errors and traces call it."""
        return f"{self.op} ({self.source.name})"

    def binding(self, name: str) -> int:
        """The number of a binding."""
        return next(k for k, b in enumerate(self.source.bindings) if b.name == name)

    def offset_word(self, binding: str) -> int | None:
        """Which word after the slots of a record holds the offset of a binding; None if it is fixed."""
        name = f"{binding}_offset"
        return self.patched.index(name) if name in self.patched else None


# By the word that begins a record: what the launch does.
nodes: dict[int, Node] = {}
_pipelines: dict[str, int] = {}
_launches: dict[tuple, int] = {}


def register(node: Node, later: bool = False) -> int:
    """Make a launch known to the host; returns its number.

    Args:
        node: what it does; its number is set.
        later: its pipeline is not needed at once and may be compiled beside other work.

    Raises:
        KernelError: too many buffers or parameters for the device.
        ShapeError: the grid is over the device's limit.
    """
    host = stream().open()
    source = node.source
    params = pack_params(source, node.values)
    positions = tuple(source.fields[name].word for name in node.patched)
    immediate = 0 < len(params) <= host.info.immediates
    text = source.finish(immediate)
    pipeline = _pipelines.get(text)
    if pipeline is None:
        letters = "".join("w" if b.written else "r" for b in source.bindings)
        _check_limits(host, letters, params)
        make = host.pipeline_later if later else host.pipeline
        pipeline = _pipelines[text] = make(text, letters, len(params), immediate, node.label)
    grid = node.grid if isinstance(node.grid, tuple) else fold(node.grid)
    # Tensors of other shapes may need the same launch; what it does is to be known of each.
    key = (pipeline, params, positions, grid, node.metas)
    number = _launches.get(key)
    if number is None:
        if max(grid) > host.info.limits.get("maxComputeWorkgroupsPerDimension", 65535):
            raise ShapeError(f"the grid {grid} is over the device's limit. Use smaller tensors.")
        number = _launches[key] = host.launch(pipeline, params, positions, *grid)
    node.number = number
    nodes.setdefault(node.head, node)
    return number


def most_buffers() -> int:
    """Buffers that one kernel may bind on this device."""
    return stream().open().info.limits.get("maxStorageBuffersPerShaderStage", 8)


# What the arena takes for one launch.
MOST_PARAMS = 256


def _check_limits(host, letters: str, params: bytes) -> None:
    limit = most_buffers()
    if len(letters) > limit:
        raise KernelError(
            f"{len(letters)} buffers in one kernel; this device takes {limit}. Split the operation."
        )
    if len(params) > MOST_PARAMS:
        raise KernelError(f"{len(params)} bytes of parameters; the arena takes {MOST_PARAMS}.")


def _forget() -> None:
    _pipelines.clear()
    _launches.clear()
    nodes.clear()
    from .op import forget_plans

    forget_plans()


stream().on_close.append(_forget)
