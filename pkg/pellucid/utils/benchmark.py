"""torch.utils.benchmark: how long a statement takes, by `Timer`, with the device waited for.

Source: https://pytorch.org/docs/stable/benchmark_utils.html
"""

from __future__ import annotations

import textwrap
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, floor, log10
from time import perf_counter
from typing import Any

import numpy as np

from ..device.stream import stream
from ..errors import ArgumentError

__all__ = ["Measurement", "TaskSpec", "Timer", "select_unit", "timer"]

# Shares of the median from which the middle half of the times is called wide.
_WIDE, _VERY_WIDE = 0.1, 0.25
_LEAST_INTERVAL = 25e-9  # seconds: what a measurement may be off by at least
_MOST_FIGURES = 4
_MOST_RUNS = 2**31 - 1


def timer() -> float:
    """Seconds, once webgpu has done everything asked for so far."""
    if stream().host is not None:
        stream().synchronize()
    return perf_counter()


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is well read, and its seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(log10(t) // 3), "s") if t > 0 else "s"
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


@dataclass(frozen=True)
class TaskSpec:
    """What a `Timer` measures, by its texts."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None:
            return self.label + more
        if "\n" not in self.stmt:
            return self.stmt + more
        shown = f" ({self.sub_label})" if self.sub_label else ""
        return f"stmt:{shown}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup as it is shown, if there is one."""
        if self.setup in ("", "pass"):
            return ""
        return (
            f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"
        )

    def summarize(self) -> str:
        """Title, description and setup, one below the other."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclass(repr=False)
class Measurement:
    """Times of a statement.

    Args:
        number_per_run: how often it ran for each time.
        raw_times: seconds of so many.
        task_spec: what was measured; its fields are attributes of this, too.
        metadata: anything.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one."""
        return [t / self.number_per_run for t in self.raw_times]

    def _share(self, share: float) -> float:
        return float(np.quantile(self.times, share)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        """Of `times`."""
        return self._share(0.5)

    @property
    def mean(self) -> float:
        """Of `times`."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """How far the middle half of `times` reaches."""
        return self._share(0.75) - self._share(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, roughly."""
        ordered = sorted(self.times)
        middle = ordered[len(ordered) // 4 : ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * float(np.std(middle)) / len(middle) ** 0.5, _LEAST_INTERVAL)
        return min(max(floor(log10(self.median / interval)), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _WIDE) -> bool:
        """Whether the middle half of the times is less wide than a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times are too far apart to be trusted."""
        return bool(self.raw_times) and not self.meets_confidence()

    @property
    def title(self) -> str:
        """That of what was measured."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What a row of a table is called."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count = len(self.raw_times)
        unit, scale = select_unit(self.median)

        def shown(t: float) -> str:
            return f"{t / scale:.2f}"

        runs = "measurement" if count == 1 else "measurements"
        runs = f"{count} {runs}, {self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines = [
            f"<{__name__}.{type(self).__name__} object at {id(self):#x}>",
            *self.task_spec.summarize().split("\n"),
            f"  {'Median: ' if count > 1 else ''}{shown(self.median)} {unit}",
        ]
        if count >= 4:
            ends = f"{shown(self._share(0.25))} to {shown(self._share(0.75))}"
            lines.append(f"  IQR:    {shown(self.iqr)} {unit} ({ends})")
        lines.append(f"  {runs} {threads}")
        if self.has_warnings:
            share = f"{100 * self.iqr / self.median:.1f}%"
            fluctuates = self.meets_confidence(_VERY_WIDE)
            said = (
                "could indicate system fluctuation"
                if fluctuates
                else "suggests significant environmental influence"
            )
            lines.append(f"  WARNING: Interquartile range is {share} of the median measurement.")
            lines.append(f"           This {said}.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all of its own."""
        by_task: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            by_task.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, task) for task, times in by_task.items()]


def _plain(text: str) -> str:
    text = textwrap.dedent(text)
    return text.removeprefix("\n").rstrip()


class Timer:
    """Measures a statement of Python, after a warmup, and waits for the device before each look at the clock.

    In a page it needs a browser that can suspend Python (JSPI).

    Args:
        stmt: the statement, as text.
        setup: what runs before it.
        global_setup: of C++, which is not measured here: leave it out.
        timer: gives seconds.
        globals: names of both; ``torch`` is Pellucid unless it is given.
        label, sub_label, description, env: texts that are shown.
        num_threads: shown; PyTorch sets as many, and there are none to set here.
        language: "python".

    Raises:
        ArgumentError: the statement is no text, or of another language.

    Source: https://pytorch.org/docs/stable/benchmark_utils.html#torch.utils.benchmark.Timer

    Example:
        >>> import pellucid as torch
        >>> from pellucid.utils.benchmark import Timer
        >>> measured = Timer("x + 1", globals={"x": torch.ones(3, device="cpu")}).timeit(5)
        >>> measured.number_per_run, measured.title
        (5, 'x + 1')
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ):
        if not isinstance(stmt, str):
            raise ArgumentError(f"Timer: stmt must be a text, not {type(stmt).__name__}. Name it in globals.")
        if language not in ("py", "python") or global_setup:
            raise ArgumentError("Timer: measures Python only. Leave language and global_setup out.")
        import pellucid

        names = {"torch": pellucid, **(globals or {})}
        stmt, setup = _plain(stmt), _plain(setup)
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # never 0, by which times are divided

    def timeit(self, number: int = 1000000) -> Measurement:
        """One time of so many runs, after a hundredth as many for warmup."""
        self._timeit(max(number // 100, 2))
        return Measurement(number, [self._timeit(number)], self._task)

    def _block(self, least: float) -> int:
        """So many runs that looking at the clock counts for nothing. They are the warmup, too."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while number * 10 <= _MOST_RUNS:
            taken = self._timeit(number)
            if taken > least or (overhead / taken <= 1e-4 and taken >= least / 1000):
                break
            number *= 10
        return number

    def _measured(
        self,
        number: int,
        least: float,
        most: float | None,
        callback: Callable[[int, float], Any] | None,
        enough: Callable[[Measurement], bool],
    ) -> Measurement:
        found = Measurement(number, [], self._task)
        total, stops = 0.0, False
        while total < least or not stops:
            found.raw_times.append(taken := self._timeit(number))
            total += taken
            if callback:
                callback(number, taken)
            stops = enough(found)
            if most and total > most:
                break
        return found

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Times of as many runs each as make the clock negligible, until they add up to ``min_run_time``.

        Args:
            callback: is told the runs and the seconds of each time.
            min_run_time: seconds.
        """
        number = self._block(min_run_time)
        return self._measured(number, min_run_time, None, callback, lambda m: True)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the middle half of the times is narrow.

        Args:
            threshold: how narrow, as a share of the median.
            min_run_time, max_run_time: seconds at least, and at most.
            callback: as there.
        """

        def enough(m: Measurement) -> bool:
            return len(m.raw_times) > 3 and m.meets_confidence(threshold)

        return self._measured(self._block(0.05), min_run_time, max_run_time, callback, enough)
