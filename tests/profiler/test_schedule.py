"""`schedule`, steps and traces of a profile, against PyTorch's."""

import json

import pytest
import torch as pytorch

import pellucid as torch
from pellucid.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

pytestmark = pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
CYCLES = [
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
    {"wait": 2, "warmup": 1, "active": 1, "repeat": 1, "skip_first": 3},
    {"wait": 2, "warmup": 0, "active": 2, "skip_first": 1, "skip_first_wait": 1},
]


def steps(count: int, **cycle) -> list[int]:
    """At which steps a trace was ready, of so many."""
    seen = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(**cycle),
        on_trace_ready=lambda made: seen.append(made.step_num),
        record_shapes=True,
        profile_memory=True,
        with_stack=False,
        with_flops=True,
    ) as made:
        for _ in range(count):
            torch.ones(3).sum()
            made.step()
    return seen


def told(count: int, **cycle) -> list[int]:
    """The same by PyTorch's actions: behind each step that saves, and at the end where one records."""
    action = pytorch.profiler.schedule(**cycle)
    ends = [k + 1 for k in range(count) if action(k).name == "RECORD_AND_SAVE"]
    return ends + [count] * action(count).name.startswith("RECORD")


@pytest.mark.parametrize("cycle", CYCLES)
def test_actions_are_those_of_pytorch(cycle):
    ours, theirs = schedule(**cycle), pytorch.profiler.schedule(**cycle)
    assert [ours(k).name for k in range(20)] == [theirs(k).name for k in range(20)]


@pytest.mark.parametrize("cycle", CYCLES)
@pytest.mark.parametrize("count", [2, 4, 5, 9])
def test_traces_are_ready_when_pytorchs_are(cycle, count):
    assert steps(count, **cycle) == told(count, **cycle)


def test_a_trace_has_the_steps_of_its_cycle():
    found = []

    def keep(p):
        found.append([row.count for row in p.key_averages() if row.key == "exp"])

    with profile(
        [ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=0, active=2), on_trace_ready=keep
    ) as p:
        for _ in range(6):
            torch.ones(3).exp()
            p.step()
    assert found == [[2], [2]]


def test_start_and_stop_are_a_with():
    ready = []
    p = profile(on_trace_ready=ready.append)
    p.start()
    with record_function("part", "of it"):
        torch.ones(3).exp()
    p.step()
    p.stop()
    p.stop()
    assert ready == [p]
    rows = {row.key: row for row in p.key_averages()}
    assert rows["exp"].cpu_time_total == rows["exp"].self_cpu_time_total == rows["exp"].python_time_total > 0
    assert rows["exp"].cpu_time == rows["exp"].python_time
    assert rows["exp"].self_device_time_total == rows["exp"].device_time_total
    for key in ("self_cpu_time_total", "cpu_time_total", "cuda_time_total"):
        assert "part" in p.key_averages().table(sort_by=key, row_limit=-1)


def test_names_of_activities():
    assert ProfilerActivity.CUDA is ProfilerActivity.XPU is ProfilerActivity.WEBGPU
    assert supported_activities() == {ProfilerActivity.CPU, ProfilerActivity.WEBGPU}
    assert torch.utils.compat.room("autograd.profiler").record_function is record_function
    with pytest.raises(ValueError, match="active is at least 1"):
        schedule(wait=1, warmup=1, active=0)


@pytest.mark.parametrize("packed", [False, True])
def test_traces_are_written_into_a_folder(tmp_path, packed):
    handler = tensorboard_trace_handler(tmp_path / "log", "worker", packed)
    with profile(on_trace_ready=handler):
        torch.ones(3).exp()
    (path,) = (tmp_path / "log").iterdir()
    assert path.name.startswith("worker.")
    assert path.name.endswith(".pt.trace.json" + ".gz" * packed)
    if not packed:
        assert json.loads(path.read_text())
