"""Launches that the host knows: each is registered once, and what it does is remembered for fusion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from sys import getrefcount
from typing import Any

from ..device.commands import CODE_BITS, RUN
from ..device.host import Host
from ..device.stream import stream
from ..errors import KernelError, ShapeError
from ..tensors.meta import Meta
from .expression import Map
from .kernel.launch import fold, pack_params
from .kernel.source import TURN, KernelSource, compact
from .plan_cache import forget_plans, thin_plans


class LaunchId(int):
    """The word that begins the records of a launch. Whoever holds the object holds the launch: plans, records
    that wait, programs. Numbers that are equal do not."""

    __slots__ = ()


@dataclass(eq=False, slots=True, weakref_slot=True)
class RegisteredLaunch:
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
        head: the word that begins its records, once it is registered.
        slot_count: slots that each run names.
        length: words of each run.
        facts: what fusion asks of it, once it has (`op/fusion/facts.py`).
    """

    op: str
    source: KernelSource
    values: dict[str, Any]
    patched: tuple[str, ...]
    metas: tuple[Meta | None, ...]
    grid: int | tuple[int, int, int]
    map: Map | None = None
    members: tuple[RegisteredLaunch, ...] = ()
    head: LaunchId = field(default=LaunchId(-1), init=False)
    slot_count: int = field(init=False)
    length: int = field(init=False)
    facts: Any = field(default=None, init=False)

    def __post_init__(self):
        self.slot_count = len(self.metas)
        self.length = 1 + self.slot_count + len(self.patched)

    @property
    def number(self) -> int:
        """That of the launch; -1 until it is registered."""
        return self.head >> CODE_BITS

    @property
    def label(self) -> str:
        """What errors and traces call it."""
        return _label(self.op, self.source)

    def binding(self, name: str) -> int:
        """The number of a binding."""
        return next(k for k, b in enumerate(self.source.bindings) if b.name == name)

    def offset_word(self, binding: str) -> int | None:
        """Which word after the slots of a record holds the offset of a binding; None if it is fixed."""
        name = f"{binding}_offset"
        return self.patched.index(name) if name in self.patched else None


def _label(op: str, source: KernelSource) -> str:
    return f"{op} ({source.name})"


# By the word that begins a record: what the launch does.
nodes: dict[int, RegisteredLaunch] = {}
# By their text, those used last behind the others.
_pipelines: dict[str, int] = {}
_launches: dict[tuple, RegisteredLaunch] = {}
# Launches that are kept: past so many, those that nobody holds end. And pipelines that no launch uses: to
# compile one again takes longer than to plan.
MOST_LAUNCHES = 2560
_MOST_PIPELINES = 512
# Numbers of launches that ended, until the host has heard of it.
_gone: list[int] = []
# Called when there are too many launches, to let go of some: tables of plans and what is made of launches.
on_thin: list[Callable[[], None]] = [thin_plans]
# How many launches there may be until some go.
_most = [MOST_LAUNCHES]


def register(node: RegisteredLaunch, later: bool = False) -> LaunchId:
    """Make a launch known to the host; returns the word that begins its records.

    Args:
        node: what it does; its head is set.
        later: its pipeline is not needed at once and may be compiled beside other work.

    Raises:
        KernelError: too many buffers or parameters for the device.
        ShapeError: the grid is over the device's limit.
    """
    with stream().lock:
        return _register(node, later)


def _register(node: RegisteredLaunch, later: bool) -> LaunchId:
    host = stream().open()
    source = node.source
    params = pack_params(source, node.values)
    positions = tuple(source.fields[name].word for name in node.patched)
    turn = source.fields[TURN].word if TURN in source.fields else -1
    pipeline = _pipeline(host, source, node.label, later)
    grid = node.grid if isinstance(node.grid, tuple) else fold(node.grid)
    # Tensors of other shapes may need the same launch; what it does is to be known of each.
    key = (pipeline, params, positions, grid, node.metas)
    known = _launches.get(key)
    if known is None:
        if max(grid) > host.info.limits.get("maxComputeWorkgroupsPerDimension", 65535):
            raise ShapeError(f"the grid {grid} is over the device's limit. Use smaller tensors.")
        if len(_launches) >= _most[0]:
            _thin(host, pipeline)
        number = host.launch(pipeline, params, positions, *grid, turn)
        node.head = head = LaunchId(number << CODE_BITS | RUN)
        nodes[head] = _launches[key] = known = node
    node.head = known.head
    return node.head


def compile_ahead(source: KernelSource, op: str) -> None:
    """Compile a kernel beside other work, before a launch needs it.

    Args:
        source: the kernel, filled and typed.
        op: whose it is, for messages.
    """
    with stream().lock:
        _pipeline(stream().open(), source, _label(op, source), True)


def _pipeline(host: Host, source: KernelSource, label: str, later: bool) -> int:
    """The pipeline of a kernel, whose text is compiled once."""
    nbytes = 4 * source.params_words
    immediate = 0 < nbytes <= host.info.immediates
    text = source.finish(immediate)
    pipeline = _pipelines.get(text)
    if pipeline is not None:
        return pipeline
    letters = "".join("w" if b.written else "r" for b in source.bindings)
    _check_limits(host, letters, nbytes)
    # The driver of a GPU compiles several beside each other; on a CPU they would wait for each other.
    if later or not host.info.is_software:
        # Nobody waits for what is not needed at once.
        has_time = later or not host.compiles_beside or not source.header.compact
        first = "" if has_time else compact(text)
        pipeline = host.pipeline_later(text, letters, nbytes, immediate, label, first)
    else:
        pipeline = host.pipeline(text, letters, nbytes, immediate, label)
    _pipelines[text] = pipeline
    return pipeline


def _thin(host: Host, needed: int) -> None:
    """End launches that nobody holds, and pipelines that no launch uses if these are many.

    Args:
        host: whose they are.
        needed: the pipeline of the launch to come.
    """
    if stream().has_more_than_records:
        return  # what is on its way holds no launches; next time
    for let_go in on_thin:
        let_go()
    for key in list(_launches):
        node = _launches[key]
        # By the two tables and this name; by the node and the table of nodes; and by the question itself.
        if getrefcount(node) == 4 and getrefcount(node.head) == 3:
            number = node.number
            # One step, in which no call ends: an interrupt comes before all of it or after.
            del nodes[node.head], _launches[key]
            _gone.append(number)
    # Whoever really has more goes on without asking every time.
    _most[0] = max(MOST_LAUNCHES, 2 * len(_launches))
    used = {key[0] for key in _launches} | {needed}
    unused = [text for text, pipeline in _pipelines.items() if pipeline not in used]
    ended = [_pipelines.pop(text) for text in unused[: max(len(unused) - _MOST_PIPELINES, 0)]]
    host.forget(_gone, ended)
    _gone.clear()


def most_buffers() -> int:
    """Buffers that one kernel may bind on this device."""
    return stream().open().info.limits.get("maxStorageBuffersPerShaderStage", 8)


# What the arena takes for one launch.
MOST_PARAMS = 256


def _check_limits(host: Host, letters: str, nbytes: int) -> None:
    limit = most_buffers()
    if len(letters) > limit:
        raise KernelError(
            f"{len(letters)} buffers in one kernel; this device takes {limit}. Split the operation."
        )
    if nbytes > MOST_PARAMS:
        raise KernelError(f"{nbytes} bytes of parameters; the arena takes {MOST_PARAMS}.")


def _forget() -> None:
    _pipelines.clear()
    _launches.clear()
    nodes.clear()
    _gone.clear()
    _most[0] = MOST_LAUNCHES
    forget_plans()


stream().launches = nodes
stream().on_close.append(_forget)
