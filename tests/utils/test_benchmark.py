"""`utils.benchmark` beside PyTorch's, by a clock that a program moves: the same runs, times and words."""

import re
from typing import Any

import pytest
from torch.utils import benchmark as theirs

import pellucid
from pellucid.device.stream import stream
from pellucid.errors import ArgumentError
from pellucid.utils import benchmark


class Clock:
    """Each look at it takes a microsecond, each step is a little longer than the last, in turns of seven."""

    def __init__(self, step: float):
        self.now, self.step, self.steps = 0.0, step, 0

    def look(self) -> float:
        self.now += 1e-6
        return self.now

    def tick(self, times: int = 1) -> None:
        self.steps += 1
        self.now += times * self.step * (1 + 0.1 * (self.steps % 7) / 7)


def said(measurement: Any) -> str:
    """What it says, but for where the object is."""
    return re.sub(r"^<.*>", "<>", repr(measurement))


def both(step: float, measure, **settings) -> list[Any]:
    found = []
    for library in (benchmark, theirs):
        clock = Clock(step)
        timer = library.Timer("clock.tick()", timer=clock.look, globals={"clock": clock}, **settings)
        found.append((measure(timer), clock.steps))
    return found


@pytest.mark.parametrize("step", [3e-2, 4e-4, 2e-5])
@pytest.mark.parametrize(
    "measure",
    [
        lambda t: t.timeit(200),
        lambda t: t.blocked_autorange(min_run_time=0.05),
        lambda t: t.adaptive_autorange(),
    ],
    ids=["timeit", "blocked", "adaptive"],
)  # fmt: skip
def test_the_same_runs_are_measured(measure, step):
    (got, steps), (wanted, their_steps) = both(step, measure, label="steps", sub_label="of a clock")
    assert (got.number_per_run, got.raw_times, steps) == (
        wanted.number_per_run,
        wanted.raw_times,
        their_steps,
    )
    assert said(got) == said(wanted)
    assert got.title == wanted.title == "steps: of a clock"


def test_callbacks_and_texts():
    told: list[list] = []
    for library in (benchmark, theirs):
        clock, heard = Clock(1e-3), []
        timer = library.Timer(
            """
            for _ in range(2):
                clock.tick()
            """,
            setup="clock.tick()\ny = 1",
            timer=clock.look,
            globals={"clock": clock},
            description="two",
            env="here",
            num_threads=2,
        )
        measured = timer.blocked_autorange(lambda n, t, heard=heard: heard.append((n, t)), min_run_time=0.02)
        told.append([said(measured), heard, measured.stmt, measured.num_threads, measured.as_row_name])
    assert told[0] == told[1]


TIMES = [
    [1e-3],
    [2e-8, 3e-8],
    [1e-6, 1.1e-6, 1.05e-6, 1.01e-6],
    [1.0, 1.2, 1.3, 1.4, 5.0],
    [1e-3, 2e-3, 9e-3, 4e-3, 1e-3, 7e-3],
]


@pytest.mark.parametrize("times", TIMES, ids=len)
def test_measurements_say_the_same(times):
    got, wanted = (m.Measurement(3, list(times), m.TaskSpec("f(x)", "pass")) for m in (benchmark, theirs))
    for name in ("times", "median", "mean", "iqr", "significant_figures", "has_warnings", "title", "setup"):
        assert getattr(got, name) == pytest.approx(getattr(wanted, name), rel=1e-6), name
    assert said(got) == said(wanted)
    other = [m.Measurement(2, [4e-3], m.TaskSpec("g(x)", "pass")) for m in (benchmark, theirs)]
    merged = [
        [(x.number_per_run, x.raw_times, x.stmt) for x in m.Measurement.merge([mine, its, mine])]
        for m, mine, its in ((benchmark, got, other[0]), (theirs, wanted, other[1]))
    ]
    assert merged[0] == merged[1]
    assert [benchmark.select_unit(t) for t in times] == [theirs.select_unit(t) for t in times]


def test_the_device_is_waited_for():
    """The clock is looked at once what was asked for is done, and `torch` is Pellucid."""
    x, device, waits = pellucid.ones(4), stream(), []
    real = device.synchronize
    device.synchronize = lambda: (waits.append(len(device.words)), real())[1]
    try:
        measured = benchmark.Timer("y = torch.add(x, 1)", globals={"x": x}).timeit(3)
    finally:
        del device.synchronize
    assert len(waits) == 4  # before and after the warmup, and the measurement
    assert min(waits[1::2]) > 0  # words that the device had not been given yet
    assert measured.median > 0


def test_what_is_not_measured_is_refused():
    for wrong in ({"stmt": len}, {"language": "c++"}, {"global_setup": "int x;"}):
        with pytest.raises(ArgumentError, match="Timer: "):
            benchmark.Timer(**wrong)
    for wrong in ({"stmt": len}, {"language": "java"}, {"global_setup": "int x;"}):
        with pytest.raises(ValueError, match=r"stmt|language|global_setup"):
            theirs.Timer(**wrong)
    with pytest.raises(AttributeError, match="nothing"):
        _ = benchmark.Timer().timeit(1).nothing
