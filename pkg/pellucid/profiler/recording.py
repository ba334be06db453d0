"""What ran, and where it came from: the ops of Python, the windows they made, the dispatches the host got."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ..op.kernel.launch import fold
from ..op.launches import RegisteredLaunch
from .lines import Line
from .work import moved, operations


@dataclass(eq=False)
class OpCall:
    """One call of an op, or one replay of a window that was captured.

    Args:
        op: its name, as users know it; "replay".
        line: from where.
        began: when Python came to it, in seconds: when the op before it had ended.
        ended: when its records were made.
        seconds: of these the ones in which Python neither submitted a window nor waited.
        spans: what `record_function` called the parts of the program around it, outermost first.
        is_replay: it is none of an op.
    """

    op: str
    line: Line
    began: float
    ended: float
    seconds: float
    spans: tuple[Span, ...]
    is_replay: bool = False


@dataclass(eq=False)
class Span:
    """A named part of the program: one ``with record_function(...)``.

    Args:
        name: its name.
        began: when, in seconds.
        ended: when; None while it lasts.
    """

    name: str
    began: float
    ended: float | None = None


@dataclass(eq=False)
class Dispatch:
    """One dispatch of a kernel.

    Args:
        window: the window that it was submitted in.
        node: what the launch does.
        slots: of its bindings.
        calls: the calls of ops that it does the work of, or the replay.
        immediates: bytes of parameters that the device takes without a buffer.
        time: when the GPU began and ended it, in nanoseconds of a clock of its own; None where not timed.
    """

    window: Window
    node: RegisteredLaunch
    slots: tuple[int, ...]
    calls: tuple[OpCall, ...]
    immediates: int
    time: tuple[int, int] | None = None

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops that it does the work of; several where launches were fused."""
        if self.calls and not self.calls[0].is_replay:
            return tuple(call.op for call in self.calls)
        return tuple(member.op for member in self.node.members or (self.node,))

    @property
    def is_fused(self) -> bool:
        """Whether it does the work of several launches."""
        return bool(self.node.members)

    @property
    def launches(self) -> int:
        """How many launches of ops it does the work of."""
        return _launches(self.node)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of the program that it comes from, each once; of a replay the line that asked for it."""
        return tuple(dict.fromkeys(call.line for call in self.calls))

    @property
    def kernel(self) -> str:
        """The kernel's file below ``wgsl/`` without its ending, or what was fused into one."""
        return self.node.source.name

    @property
    def grid(self) -> tuple[int, int, int]:
        """Workgroups."""
        grid = self.node.grid
        return grid if isinstance(grid, tuple) else fold(grid)

    @cached_property
    def text(self) -> str:
        """The WGSL as the device compiled it."""
        source = self.node.source
        return source.finish(0 < 4 * source.params_words <= self.immediates)

    @cached_property
    def _moved(self) -> tuple[int, int]:
        return moved(self.node, self.slots)

    @property
    def bytes_read(self) -> int:
        """Bytes of the tensors that it reads, each once."""
        return self._moved[0]

    @property
    def bytes_written(self) -> int:
        """Bytes of the tensors that it writes, each once."""
        return self._moved[1]

    @property
    def bytes(self) -> int:
        """Bytes that it reads and writes."""
        return self.bytes_read + self.bytes_written

    @cached_property
    def flops(self) -> int:
        """Floating-point operations of the products of matrices in it."""
        return operations(self.node)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of its tensors in the order of the bindings; what several share once."""
        metas = {slot: m for slot, m in zip(self.slots, self.node.metas, strict=True) if m is not None}
        return tuple(tuple(m.shape) for m in metas.values())

    @property
    def seconds(self) -> float | None:
        """What it took on the GPU; None where it was not timed."""
        return None if self.time is None else max(0, self.time[1] - self.time[0]) / 1e9

    def __repr__(self) -> str:
        return f"<{' + '.join(self.ops)} ({self.kernel}), grid {self.grid}>"


def _launches(node: RegisteredLaunch) -> int:
    return sum(map(_launches, node.members)) if node.members else 1


@dataclass(eq=False)
class Window:
    """One window of records that was submitted.

    Args:
        number: which, from 0.
        began: when its submission began, in seconds.
        ended: when it was submitted; the GPU works on.
        dispatches: its runs.
        copies: bytes copied from buffer to buffer by each record that does.
        uploads: bytes of each small upload.
        time: from its submission until its work was done, in nanoseconds of the host's clock, where the
            device has no timestamps.
    """

    number: int
    began: float
    ended: float
    dispatches: list[Dispatch] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    uploads: list[int] = field(default_factory=list)
    time: tuple[int, int] | None = None

    @property
    def seconds(self) -> float | None:
        """From its submission until its work was done; None where dispatches are timed, or nothing is."""
        return None if self.time is None else (self.time[1] - self.time[0]) / 1e9


@dataclass
class Recording:
    """All that was seen.

    Args:
        began: when, in seconds.
        ended: when.
        calls: of ops on webgpu, in order.
        spans: named parts of the program.
        windows: that were submitted.
        waits: (begin, end) of the times in which Python asked for values and waited for them.
        asked: whether times were asked for.
        has_timestamps: whether they are those of dispatches; of windows if not.
    """

    began: float = 0.0
    ended: float = 0.0
    calls: list[OpCall] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    asked: bool = False
    has_timestamps: bool = False

    @property
    def dispatches(self) -> list[Dispatch]:
        """Of all windows, in order."""
        return [d for window in self.windows for d in window.dispatches]
