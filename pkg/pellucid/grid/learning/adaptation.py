"""How fast an online learner adapts when its task changes: accuracy in windows of time, and recovery."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError, RangeError
from ...nn.modules.module import Module
from ...tensors.tensor import Tensor
from .methods import Loss, TrainingMethod, hits


@dataclass
class TimeWindow:
    """What came out of a learner in one window of time: how much of it, and how much was right."""

    start: float
    end: float
    task: str
    outputs: int = 0
    correct: int = 0

    @property
    def accuracy(self) -> float:
        """The part that was right; 0 if nothing came out."""
        return self.correct / self.outputs if self.outputs else 0.0

    @property
    def outputs_per_second(self) -> float:
        """How much came out in a unit of the clock."""
        return self.outputs / (self.end - self.start)


@dataclass(frozen=True)
class TaskChange:
    """A change of task, and what it did.

    Args:
        at: when, since the start.
        before, after: the tasks.
        accuracy_before: in the last full window before; None if there was none.
        accuracy_after: in the first full window after; None if there was none.
        recovery: from the change to the end of the first window that is nearly as good as before; None if
            there was none until the next change.
    """

    at: float
    before: str
    after: str
    accuracy_before: float | None
    accuracy_after: float | None
    recovery: float | None


@dataclass(frozen=True)
class AdaptationResult:
    """What a tracker recorded.

    Args:
        windows: in order; at a change of task a new one begins.
        changes: of tasks.
        duration: from the start to the end.
    """

    windows: list[TimeWindow]
    changes: list[TaskChange]
    duration: float

    @property
    def outputs(self) -> int:
        """How much came out of the learner."""
        return sum(w.outputs for w in self.windows)

    @property
    def accuracy(self) -> float:
        """The part of all outputs that was right; 0 if nothing came out."""
        return sum(w.correct for w in self.windows) / self.outputs if self.outputs else 0.0


class AdaptationTracker:
    """Sorts a learner's outputs into windows of time, and measures how it recovers from changes of task.

    Args:
        window: length of a window, in units of the clock.
        recovered: the part of the accuracy before a change at which the learner has recovered.
        clock: seconds by default; any function that never falls, such as a count of steps.

    Raises:
        RangeError: the window is not positive, or `recovered` not from 0 to 1.

    Example:
        >>> import pellucid
        >>> times = iter(range(100))
        >>> tracker = pellucid.grid.AdaptationTracker(4, clock=lambda: next(times))
        >>> tracker.start("left")
        >>> for right in [1] * 8: tracker.record(right)
        >>> tracker.change("right")
        >>> for right in [0] * 4 + [1] * 8: tracker.record(right)
        >>> tracker.finish().changes[0].accuracy_after
        0.0
    """

    def __init__(self, window: float, recovered: float = 0.9, clock: Callable[[], float] = time.perf_counter):
        if not 0 < window < float("inf") or not 0 <= recovered <= 1:
            raise RangeError(
                f"AdaptationTracker: window must be positive and recovered from 0 to 1, not {window} and "
                f"{recovered}."
            )
        self.window, self.recovered, self.clock = window, recovered, clock
        self.began: float | None = None

    def start(self, task: str) -> None:
        """Begin anew with a task."""
        self.began = self.clock()
        self.windows = [TimeWindow(0.0, self.window, task)]
        self.changes: list[tuple[float, str, str]] = []

    def change(self, task: str) -> None:
        """From now on the learner has another task; a new window begins."""
        now = self._now()
        before = self.windows[-1]
        self.changes.append((now, before.task, task))
        if now > before.start:
            before.end = now
        else:
            self.windows.pop()
        self.windows.append(TimeWindow(now, now + self.window, task))

    def record(self, correct: bool | int, outputs: int = 1) -> None:
        """One output that was right or not, or how many of several were right.

        Raises:
            RangeError: there are not between 0 and `outputs` right ones.
        """
        if not 0 <= correct <= outputs:
            raise RangeError(f"AdaptationTracker: {correct} of {outputs} outputs can't be right.")
        self._now()
        self.windows[-1].outputs += outputs
        self.windows[-1].correct += int(correct)

    def finish(self) -> AdaptationResult:
        """All windows and changes until now."""
        now = self._now()
        windows = [w for w in self.windows if w.start < now]
        if windows:
            windows[-1].end = min(windows[-1].end, now)
        ends = [at for at, _, _ in self.changes[1:]] + [now]
        changes = [self._told(change, end, windows) for change, end in zip(self.changes, ends, strict=True)]
        return AdaptationResult(windows, changes, now)

    def _now(self) -> float:
        """The time since the start; windows that are over by then are closed."""
        if self.began is None:
            raise ArgumentError("AdaptationTracker: call start() with a task first.")
        now = self.clock() - self.began
        while now >= self.windows[-1].end:
            end = self.windows[-1].end
            self.windows.append(TimeWindow(end, end + self.window, self.windows[-1].task))
        return now

    def _told(self, change: tuple[float, str, str], end: float, windows: list[TimeWindow]) -> TaskChange:
        at, before, after = change
        # A window that was cut short by a change says little, if there is another.
        full = [w for w in windows if w.outputs and w.end - w.start >= 0.999 * self.window]
        earlier = [w for w in full if w.end <= at and w.task == before]
        later = [w for w in full if w.start >= at and w.end <= end]
        level = earlier[-1].accuracy if earlier else None
        back = [w for w in later if level is not None and w.accuracy >= self.recovered * level]
        return TaskChange(
            at, before, after, level,
            later[0].accuracy if later else None,
            back[0].end - at if back else None,
        )  # fmt: skip


def adapt(
    network: Module,
    method: TrainingMethod,
    tasks: Mapping[str, Callable[[], tuple[Tensor, Tensor]]],
    schedule: Iterable[tuple[str, int]],
    loss: Loss,
    tracker: AdaptationTracker | None = None,
) -> AdaptationResult:
    """Let a learner meet one task after the other: each batch is answered first, and learned from then.

    Args:
        network: what answers.
        method: what trains it, such as `Backpropagation` or `TargetPropagation`.
        tasks: by name, functions that give a batch of inputs and targets.
        schedule: names of tasks, and for how many batches each lasts.
        loss: from the output and the target to a number.
        tracker: where answers go; if None, one whose clock counts batches, in windows of 10.

    Raises:
        ArgumentError: the schedule is empty, or names a task that there is not.

    Source: Gama, Sebastiao and Rodrigues 2013, "On evaluating stream learning algorithms", for answers before
        learning (prequential evaluation)

    Example:
        >>> import pellucid
        >>> net = pellucid.nn.Linear(1, 1, device="cpu")
        >>> x = pellucid.linspace(-2, 2, 8, device="cpu").unsqueeze(1)
        >>> tasks = {"same": lambda: (x, x), "turned": lambda: (x, -x)}
        >>> told = pellucid.grid.adapt(net, pellucid.grid.Backpropagation(net), tasks,
        ...     [("same", 40), ("turned", 40)], pellucid.nn.functional.mse_loss)
        >>> told.changes[0].at, told.changes[0].recovery
        (40.0, 20.0)
    """
    schedule = list(schedule)
    if not schedule or any(task not in tasks for task, _ in schedule):
        raise ArgumentError(
            f"adapt: the schedule must name tasks of {', '.join(tasks)}, not {[t for t, _ in schedule]}."
        )
    batches = 0
    tracker = tracker or AdaptationTracker(10.0, clock=lambda: float(batches))
    for number, (task, count) in enumerate(schedule):
        if number == 0:
            tracker.start(task)
        else:
            tracker.change(task)
        for _ in range(count):
            input, target = tasks[task]()
            with no_grad():
                right = hits(network(input), target)
            tracker.record(int(right.sum().item()), right.numel())
            method.step(input, target, loss)
            batches += 1
    return tracker.finish()
